"""A camera: GStreamer's RTSP server. camera.py PORT [--login USER:PASSWORD] NAME=PIPELINE..."""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

ROLE = "user"

Gst.init(None)
port, *words = sys.argv[1:]
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(port)
login = words[0] == "--login"
if login:
    user, password = words[1].split(":")
    words = words[2:]
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", ROLE)
    auth.add_digest(user, password, token)
    server.set_auth(auth)
for word in words:
    name, pipeline = word.split("=", 1)
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {pipeline} )")
    factory.set_shared(True)
    if login:
        permissions = GstRtspServer.RTSPPermissions()
        for right in ("access", "construct"):
            permissions.add_permission_for_role(ROLE, f"media.factory.{right}", True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory(f"/{name}", factory)
if server.attach(None) == 0:
    sys.exit(f"port {port} is in use")
print("ready", flush=True)
GLib.MainLoop().run()
