from tools.install import uv_variables


def test_what_pip_is_told_uv_is_told() -> None:
    told = [
        "global.index-url='https://files.example/simple'",
        "global.timeout='60'",
        "install.find-links='\\n/opt/wheels\\n/srv/wheels'",
        ":env:.cert='/etc/ssl/ours.pem'",
        ":env:.extra-index-url='https://a.example https://b.example'",
    ]
    assert uv_variables(told, {}) == {
        "UV_DEFAULT_INDEX": "https://files.example/simple",
        "UV_FIND_LINKS": "/opt/wheels,/srv/wheels",
        "SSL_CERT_FILE": "/etc/ssl/ours.pem",
        "UV_INDEX": "https://a.example https://b.example",
    }


def test_a_variable_wins_over_a_file_as_in_pip() -> None:
    told = [":env:.index-url='https://env.example'", "global.index-url='https://file.example'"]
    assert uv_variables(told, {}) == {"UV_DEFAULT_INDEX": "https://env.example"}


def test_what_uv_is_told_already_stays() -> None:
    told = ["global.index-url='https://files.example/simple'"]
    assert uv_variables(told, {"UV_DEFAULT_INDEX": "https://mine.example"}) == {}
