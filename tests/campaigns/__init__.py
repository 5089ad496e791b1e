"""Long runs by hand that try to make the service lose, tear or refuse something; short ones are among the tests."""
