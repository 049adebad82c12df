#include "shardbus/client.hpp"

#include "api/inside.hpp"
#include "client/client_core.hpp"

namespace shardbus {

class Client::Impl {
 public:
  explicit Impl(std::shared_ptr<client::ClientCore> client)
      : core(std::move(client)), messenger(core) {}
  ~Impl() {
    if (!core->stopped() && client::ClientCore::inside_callback()) die_inside_callback("a Client");
    core->stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<client::ClientCore> core;
  std::shared_ptr<Messenger> messenger;
};

Result<Client> Client::connect(const ClientOptions& options) {
  auto core = client::ClientCore::connect(options);
  if (!core) return core.error();
  return Client(std::make_shared<Impl>(std::move(*core)));
}

Client::Client(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

EntityRef Client::entity(std::string type, std::string id) const {
  return {impl_->messenger, std::move(type), std::move(id)};
}

const std::shared_ptr<Messenger>& Client::messenger() const {
  return impl_->messenger;
}
void Client::stop() {
  impl_->core->stop();
}

}  // namespace shardbus
