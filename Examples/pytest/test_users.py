import users


def test_users_are_listed():
    assert users.names() == ["Ada", "Bob"]


def test_a_user_is_renamed():
    assert users.names() == ["Ada", "Bob"]
    assert users.rename(2, "Bela") == "Bela"
    assert users.names() == ["Ada", "Bela"]


def test_there_is_no_third_user():
    assert not users.exists(3)
