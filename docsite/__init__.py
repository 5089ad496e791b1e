"""The documentation as a site: what MkDocs does not do by itself. Not part of the package that is installed."""
