"""Secrets that are written down are found."""

import pytest

from cutwater.spark.secrets import inline_secrets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "x"),
        ("password", 1234),
        ("sslpassword.secret", "x"),
        ("dsn", "postgresql://me:hunter2@db/x"),
        ("dsn", "host=db password=hunter2"),
        ("settings", {"sasl.password": "x"}),
        ("storage_options", {"aws_secret_access_key": "x"}),
        ("settings", {"deep": {"api_key": "x"}}),
        ("urls", ["http://a", "http://a:b@c"]),
        ("spark.hadoop.fs.s3a.secret.key", "x"),
        ("spark.hadoop.fs.s3a.access.key", "x"),
        ("fs.s3a.encryption.key", "x"),
        ("encryption_key", "x"),
        ("fs.azure.encryption.encoded.client-provided-key", "x"),
        ("fs.s3a.signing-key", "x"),
        ("parquet.encryption.key.list", "x"),
        ("master.key", "x"),
        ("spark.kubernetes.authenticate.driver.oauthToken", "x"),
        ("spark.hadoop.fs.oss.accessKeySecret", "x"),
        ("spark.hadoop.fs.cosn.userinfo.secretKey", "x"),
        ("clientSecret", "x"),
        ("settings", {"ssl.key.pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIE"}),
        ("connection", "Endpoint=sb://x/;SharedAccessKey=y"),
    ],
)
def test_a_secret_is_found(name, value):
    assert len(list(inline_secrets(name, value))) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password_env", "PGPASSWORD"),
        ("password_file", "secret.txt"),
        ("ssl.key.location", "key.pem"),
        ("dsn", "postgresql://me@db:5432/x"),
        ("dsn", "host=db user=me"),
        ("key", "name"),
        ("encryption.key.provider.uri", "kms://http@here:9600/kms"),
        ("parquet.encryption.kms.client.class", "org.example.Kms"),
        ("storage_options", {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_REGION": "eu"}),
        ("keys", ["tokens_used"]),
        ("use_token", True),
        ("spark.hadoop.fs.oss.accessKeyId", "x"),
        ("spark.security.credentials.hive.enabled", "false"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login/token"),
        ("path", "in"),
    ],
)
def test_what_is_no_secret_is_let_through(name, value):
    assert list(inline_secrets(name, value)) == []
