"""Rows of the accounts app, one kind a file."""

from controlplane.accounts.models.api_token import ApiToken
from controlplane.accounts.models.audit_entry import AuditEntry
from controlplane.accounts.models.login_link import LoginLink
from controlplane.accounts.models.sign_in_failure import SignInFailure
from controlplane.accounts.models.tenant import InferenceKey, Tenant, TenantUsage
from controlplane.accounts.models.user import User

__all__ = ["ApiToken", "AuditEntry", "InferenceKey", "LoginLink", "SignInFailure", "Tenant", "TenantUsage", "User"]
