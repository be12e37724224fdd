"""The page that searches, sorts and maps sentences in the browser, and `xsent web`, which serves it."""
