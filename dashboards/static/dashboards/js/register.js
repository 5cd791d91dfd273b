// The call beside the registration form says what the form says.
const form = document.getElementById("register-form");
const target = document.getElementById("snippet-register");

function body() {
  const values = new FormData(form);
  const settings = { url: values.get("url") || "http://ENGINE_HOST:8000" };
  if (values.get("hardware")) settings.hardware = values.get("hardware");
  if (values.get("role") && values.get("role") !== "both") settings.role = values.get("role");
  const models = (values.get("models") ?? "").split(",").map((model) => model.trim()).filter(Boolean);
  if (models.length) settings.models = models;
  if (values.get("spot")) settings.spot = true;
  if (values.get("kv_events")) {
    settings.kv_events = { endpoint: values.get("kv_events") };
    if (values.get("kv_replay")) settings.kv_events.replay = values.get("kv_replay");
    if (values.get("kv_bind")) settings.kv_events.direction = "bind";
  }
  if (values.get("data_parallel_ranks")) settings.data_parallel_ranks = Number(values.get("data_parallel_ranks"));
  return JSON.stringify(settings);
}

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function show() {
  const name = encodeURIComponent(new FormData(form).get("name") || "gpu-00");
  target.textContent = [
    `curl -X PUT ${target.dataset.webUrl}/api/v1/instances/${name}/ \\`,
    '  -H "Authorization: Bearer $POINTSMAN_TOKEN" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d ${quoted(body())}`,
  ].join("\n");
}

form.addEventListener("input", show);
show();
