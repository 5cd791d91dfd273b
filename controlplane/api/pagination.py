"""Pages of a list."""

from rest_framework.pagination import PageNumberPagination


class NumberedPages(PageNumberPagination):
    """``?page=2&page_size=100``: count, next, previous, results."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
