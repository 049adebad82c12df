// hello, welcome, reject, no_session, here: one map, because other languages write them by hand.
// The rest of a session is positional.
#include "wire/codec.hpp"
#include "wire/fields.hpp"
#include "wire/text.hpp"

namespace shardbus::wire {
namespace {

constexpr std::string_view kRoleNames[] = {"node", "client", "worker"};

void read_role(Cursor& in, Role& out) {
  const std::string_view name = in.bytes(kTypeBytesMax);
  const auto* found = std::find(std::begin(kRoleNames), std::end(kRoleNames), name);
  if (found == std::end(kRoleNames)) return in.fail();
  out = static_cast<Role>(found - std::begin(kRoleNames));
}

struct HelloSeen {
  bool version = false, role = false, node = false;
};

void read_hello_version(Cursor& in, Hello& out) {
  read_array(in, 2, [&] {
    out.major = in.narrow<std::uint16_t>();
    out.minor = in.narrow<std::uint16_t>();
  });
}

bool read_hello_identity(Cursor& in, std::string_view key, Hello& out, HelloSeen& seen) {
  if (key == "version") {
    seen.version = true;
    read_hello_version(in, out);
  } else if (key == "role") {
    seen.role = true;
    read_role(in, out.role);
  } else if (key == "node") {
    seen.node = true;
    read_node(in, out.node);
  } else if (key == "cluster") {
    read_string(in, kNodeNameBytesMax, out.cluster);
  } else if (key == "sender") {
    out.sender = in.uint();
  } else if (key == "to") {
    out.to = NodeKey{in.uint()};
  } else {
    return false;
  }
  return true;
}

bool read_hello_wish(Cursor& in, std::string_view key, Hello& out) {
  if (key == "types") {
    read_types(in, out.types);
  } else if (key == "max_batch") {
    out.max_batch = in.narrow<std::uint32_t>();
    if (out.max_batch == 0) in.fail();
  } else if (key == "table") {
    out.wants_table = in.boolean();
  } else if (key == "credit") {
    read_credit(in, out.credit);
  } else {
    return false;
  }
  return true;
}

// Zero would stop the session from carrying anything, so a limit of zero is malformed.
void read_limit(Cursor& in, std::uint32_t& out) {
  out = in.narrow<std::uint32_t>();
  if (out == 0) in.fail();
}

void read_limits(Cursor& in, SessionLimits& out) {
  read_map(in, [&](std::string_view key) {
    if (key == "frame_bytes") {
      read_limit(in, out.frame_bytes);
    } else if (key == "batch") {
      read_limit(in, out.batch);
    } else if (key == "id_bytes") {
      read_limit(in, out.id_bytes);
    } else if (key == "payload_bytes") {
      read_limit(in, out.payload_bytes);
    } else {
      return false;
    }
    return true;
  });
}

void write_limits(Writer& out, const SessionLimits& limits) {
  out.map(4);
  out.str("frame_bytes");
  out.uint(limits.frame_bytes);
  out.str("batch");
  out.uint(limits.batch);
  out.str("id_bytes");
  out.uint(limits.id_bytes);
  out.str("payload_bytes");
  out.uint(limits.payload_bytes);
}

struct WelcomeSeen {
  bool session = false, node = false, credit = false;
};

bool read_welcome_key(Cursor& in, std::string_view key, Welcome& out, WelcomeSeen& seen) {
  if (key == "session") {
    seen.session = true;
    out.session = in.uint();
  } else if (key == "node") {
    seen.node = true;
    read_node(in, out.node);
  } else if (key == "cluster") {
    read_string(in, kNodeNameBytesMax, out.cluster);
  } else if (key == "cluster_id") {
    out.cluster_id = in.uint();
  } else if (key == "credit") {
    seen.credit = true;
    read_credit(in, out.credit);
  } else if (key == "limits") {
    read_limits(in, out.limits);
  } else if (key == "ping_ms") {
    out.ping_ms = in.narrow<std::uint32_t>();
  } else if (key == "worker_lease_ms") {
    out.worker_lease_ms = in.narrow<std::uint32_t>();
  } else {
    return false;
  }
  return true;
}

void write_refusal(Writer& out, std::uint16_t code, std::string_view text) {
  std::string scratch;
  out.str("code");
  out.uint(code);
  out.str("text");
  out.str(clean_text(text, scratch));
}

}  // namespace

void encode(std::string& out, const Hello& hello) {
  Writer to(out);
  const bool is_node = hello.role == Role::node;
  to.envelope(Kind::hello, 1);
  to.map(hello.to == kNoNode ? 9 : 10);
  to.str("version");
  to.array(2);
  to.uint(hello.major);
  to.uint(hello.minor);
  to.str("cluster");
  to.str(hello.cluster);
  to.str("role");
  to.str(kRoleNames[static_cast<std::size_t>(hello.role)]);
  to.str(is_node ? "node" : "name");
  is_node ? write_node(to, hello.node) : to.str(hello.node.name);
  to.str("sender");
  to.uint(hello.sender);
  to.str("types");
  write_types(to, hello.types);
  to.str("max_batch");
  to.uint(hello.max_batch);
  to.str("table");
  to.boolean(hello.wants_table);
  to.str("credit");
  write_credit(to, hello.credit);
  if (hello.to == kNoNode) return;
  to.str("to");
  to.uint(hello.to.value);
}

Errc decode(const Envelope& in, Hello& out) {
  out = Hello{};
  HelloSeen seen;
  std::string label;
  Cursor from = body_of(in, 1);
  read_map(from, [&](std::string_view key) {
    if (key == "name") {
      read_string(from, kNodeNameBytesMax, label);
      return true;
    }
    return read_hello_identity(from, key, out, seen) || read_hello_wish(from, key, out);
  });
  if (!from.ok()) return from.error();
  const bool is_node = out.role == Role::node;
  if (!seen.version || !seen.role || is_node != seen.node) return Errc::malformed;
  if (!is_node) out.node.name = label;
  return Errc::ok;
}

void encode(std::string& out, const Welcome& welcome) {
  Writer to(out);
  to.envelope(Kind::welcome, 1);
  to.map(welcome.worker_lease_ms == 0 ? 7 : 8);
  to.str("session");
  to.uint(welcome.session);
  to.str("node");
  write_node(to, welcome.node);
  to.str("cluster");
  to.str(welcome.cluster);
  to.str("cluster_id");
  to.uint(welcome.cluster_id);
  to.str("credit");
  write_credit(to, welcome.credit);
  to.str("limits");
  write_limits(to, welcome.limits);
  to.str("ping_ms");
  to.uint(welcome.ping_ms);
  if (welcome.worker_lease_ms == 0) return;
  to.str("worker_lease_ms");
  to.uint(welcome.worker_lease_ms);
}

Errc decode(const Envelope& in, Welcome& out) {
  out = Welcome{};
  out.limits = {kFrameBytesMax, kBatchMax, kEntityIdBytesMax, kPayloadBytesMax};
  WelcomeSeen seen;
  Cursor from = body_of(in, 1);
  read_map(from, [&](std::string_view key) { return read_welcome_key(from, key, out, seen); });
  if (!from.ok()) return from.error();
  return seen.session && seen.node && seen.credit ? Errc::ok : Errc::malformed;
}

void encode(std::string& out, const Reject& reject) {
  Writer to(out);
  to.envelope(Kind::reject, 1);
  to.map(3);
  write_refusal(to, reject.code, reject.text);
  to.str("retry_after_ms");
  to.uint(reject.retry_after_ms);
}

void encode_no_session(std::string& out, std::uint16_t code, std::string_view text) {
  Writer to(out);
  to.envelope(Kind::no_session, 1);
  to.map(2);
  write_refusal(to, code, text);
}

Errc decode(const Envelope& in, Reject& out) {
  out = Reject{};
  Cursor from = body_of(in, 1);
  read_map(from, [&](std::string_view key) {
    if (key == "code") {
      out.code = read_code(from);
    } else if (key == "text") {
      read_string(from, kTextBytesMax, out.text);
    } else if (key == "retry_after_ms") {
      out.retry_after_ms = from.narrow<std::uint32_t>();
    } else {
      return false;
    }
    return true;
  });
  if (from.ok() && out.code == 0) from.fail();
  return from.error();
}

void encode(std::string& out, const Here& here) {
  Writer to(out);
  to.envelope(Kind::here, 1);
  to.map(3);
  to.str("cluster");
  to.str(here.cluster);
  to.str("cluster_id");
  to.uint(here.cluster_id);
  to.str("node");
  write_node(to, here.node);
}

Errc decode(const Envelope& in, Here& out) {
  out = Here{};
  bool seen_node = false;
  Cursor from = body_of(in, 1);
  read_map(from, [&](std::string_view key) {
    if (key == "cluster") {
      read_string(from, kNodeNameBytesMax, out.cluster);
    } else if (key == "cluster_id") {
      out.cluster_id = from.uint();
    } else if (key == "node") {
      seen_node = true;
      read_node(from, out.node);
    } else {
      return false;
    }
    return true;
  });
  if (from.ok() && !seen_node) from.fail();
  return from.error();
}

void encode_empty(std::string& out, Kind kind) {
  Writer(out).envelope(kind, 0);
}

void encode(std::string& out, const Credit& credit) {
  Writer to(out);
  to.envelope(Kind::credit, 2);
  to.uint(credit.envelopes);
  to.uint(credit.bytes);
}

Errc decode(const Envelope& in, Credit& out) {
  Cursor from = body_of(in, 2);
  out.envelopes = from.uint();
  out.bytes = from.uint();
  return from.error();
}

void encode(std::string& out, const Link& link) {
  Writer to(out);
  to.envelope(Kind::link, 2);
  to.uint(link.session);
  to.uint(link.sequence);
}

Errc decode(const Envelope& in, Link& out) {
  Cursor from = body_of(in, 2);
  out.session = from.uint();
  out.sequence = from.uint();
  return from.error();
}

}  // namespace shardbus::wire
