pytest_plugins = ["larder_sessions"]
