"""Paths of signing in and out."""

from django.urls import path

from controlplane.accounts import views

urlpatterns = [
    path("login/", views.SignIn.as_view(), name="login"),
    path("login/once/<str:token>/", views.sign_in_once, name="login-once"),
    path("logout/", views.SignOut.as_view(), name="logout"),
]
