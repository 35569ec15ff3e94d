// The console as an operator uses it, from a bad plugin to a message that is handled after all.
// Started by tests/e2e/console.rs, which runs the host; what it needs to know comes by environment.

import assert from "node:assert/strict";
import { copyFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withBrowser } from "./browser.mjs";

const given = (name) => {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; tests/e2e/console.rs sets it`);
  return value;
};
const url = given("ONCUE_URL");
const plugins = given("ONCUE_PLUGINS");
const shots = given("ONCUE_SHOTS");
const executable = given("ONCUE_CHROMIUM");

/** Writes a file of the plugins directory, whole at once. */
function drop(name, write) {
  const partial = join(plugins, `.${name}.partial`);
  write(partial);
  renameSync(partial, join(plugins, name));
}

const MANIFEST = `[process]
description = "Settles orders"
memory = "16 MiB"
[process.grants]
put = ["settled", "echo.out"]
[queue.orders]
trigger = "first"
backout-threshold = 2
retry = { initial = "1ms", max = "10ms" }
`;

/** Reloads nothing: waits until the page, as it is open, shows the text. */
const shows = (page, text) => page.getByText(text).first().waitFor();

async function story({ open, shoot }) {
  const page = await open();
  console.log("- a bad plugin is dropped, and the page says why");
  await page.goto(`${url}/plugins`);
  await page.locator("#pulse.on").waitFor();
  drop("orders.toml", (path) => writeFileSync(path, MANIFEST));
  drop("orders.wasm", (path) => writeFileSync(path, "this is not a component"));
  await shows(page, "quarantined");
  await shoot(page, "story-1-quarantined");
  await page.getByRole("link", { name: "orders" }).first().click();
  await shows(page, "Why it is quarantined");
  await shows(page, "No version serves");

  console.log("- it is fixed, and the page shows it live");
  drop("orders.wasm", (path) => copyFileSync(given("ONCUE_FIRST"), path));
  await page.locator("h1 + .badge", { hasText: "ready" }).waitFor();
  await shoot(page, "story-2-ready");

  console.log("- poison is put by the form, and dies");
  await page.goto(`${url}/queues/orders`);
  await page.getByRole("link", { name: "Put a message" }).click();
  await page.getByLabel("Body", { exact: true }).fill("trap");
  await page.getByLabel("Content type").fill("text/plain");
  await page.getByLabel("Properties, one NAME=VALUE a line").fill("customer=Zoë\nlane=7");
  await page.getByRole("button", { name: "Put", exact: true }).click();
  await shows(page, "is on \"orders\"");
  await page.goto(`${url}/dead-letters`);
  await page.getByRole("row", { name: /trapped/ }).first().waitFor();
  await shoot(page, "story-3-dead-letters");

  console.log("- its page has the trap and the log");
  await page.locator("#letters tbody th a").first().click();
  await shows(page, "Why it is here");
  await shows(page, "Backtrace");
  await shows(page, "the body says trap");
  assert.match(await page.locator("pre.bytes").innerText(), /^trap$/);
  await shows(page, "Zoë");
  await shoot(page, "story-4-dead-letter");
  await page.locator(".pairs a[href^='/tasks/']").click();
  await shows(page, "The message in hand");
  await shoot(page, "story-5-task");

  console.log("- the fixed version is dropped");
  await page.goto(`${url}/plugins/orders`);
  await page.locator("#pulse.on").waitFor();
  const before = await page.locator(".pairs dd.mono").first().innerText();
  drop("orders.wasm", (path) => copyFileSync(given("ONCUE_FIXED"), path));
  await page.waitForFunction(
    (digest) => document.querySelector(".pairs dd.mono").innerText !== digest, before);

  console.log("- redriven, it is handled");
  await page.goto(`${url}/dead-letters`);
  await page.locator("input[data-pick]").first().check();
  await page.getByRole("button", { name: "Redrive those ticked" }).click();
  await shows(page, "1 dead letter went back");
  await shows(page, "No message has failed for good");
  await page.goto(`${url}/queues/orders`);
  await page.getByRole("row", { name: /committed/ }).first().waitFor();
  assert.match(await page.locator("figure.flow").getAttribute("aria-label"), /10, 12, 14, 50, 54, 58, 60, 62, 64, 66, 68/);
  await shoot(page, "story-6-handled");
  const out = await page.request.get(`${url}/v1/queues/echo.out`);
  assert.equal((await out.json()).depth, 1);
}

/** A host in many states, for the pictures. */
async function furnish(page) {
  const send = async (method, path, data, headers = {}) => {
    const answer = await page.request.fetch(`${url}${path}`, { method, data, headers });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
  };
  const json = { "content-type": "application/json" };
  const define = (queue, set) => send("PUT", `/v1/queues/${queue}`, JSON.stringify(set), json);
  await define("invoices", { trigger: "first", process: "not-there" });
  await define("audit.events", { trigger: "none" });
  await define("returns", { trigger: "depth", "trigger-depth": 50, process: "orders" });
  await define("night-run", { trigger: "every", process: "orders" });
  await send("POST", "/v1/queues/night-run/pause");
  for (let number = 0; number < 12; number += 1) {
    const order = { order: 4711 + number, customer: "Zoë & Söhne", items: [{ sku: "A-1", count: 2 }], paid: true };
    const headers = { "content-type": "application/json", "oncue-property-lane": `${number}`, "oncue-correlation-id": `c-${number}` };
    for (const queue of ["invoices", "returns", "night-run", "audit.events"]) {
      if (queue !== "returns" || number < 5) await send("POST", `/v1/queues/${queue}/messages`, JSON.stringify(order), headers);
    }
  }
  const plugin = async () => (await page.request.get(`${url}/v1/plugins/orders`)).json();
  const fixed = (await plugin()).digest;
  drop("orders.wasm", (path) => copyFileSync(given("ONCUE_FIRST"), path));
  for (let looks = 0; looks < 600 && (await plugin()).digest === fixed; looks += 1) await page.waitForTimeout(100);
  for (const body of ["trap", "trap", "trap"]) await send("POST", "/v1/queues/orders/messages", body);
  await page.goto(`${url}/dead-letters`);
  await page.locator("input[data-pick]").nth(2).waitFor();
  const letters = await (await page.request.get(`${url}/v1/queues/oncue.dead-letter/messages`)).json();
  const tasks = await (await page.request.get(`${url}/v1/tasks?failed=true`)).json();
  const orders = await (await page.request.get(`${url}/v1/queues/invoices/messages`)).json();
  return [
    ["overview", "/"], ["queues", "/queues"], ["queue", "/queues/invoices"], ["queue-served", "/queues/orders"],
    ["put", "/queues/orders/put"], ["audit", "/audit"],
    ["messages", "/queues/invoices/messages"],
    ["message", `/queues/invoices/messages/${orders.messages[0].id}`],
    ["message-hex", `/queues/invoices/messages/${orders.messages[0].id}?as=hex`],
    ["dead-letters", "/dead-letters"], ["dead-letter", `/queues/oncue.dead-letter/messages/${letters.messages[0].id}`],
    ["tasks", "/tasks"], ["task", `/tasks/${tasks[0].id}`], ["plugins", "/plugins"], ["plugin", "/plugins/orders"],
    ["ledger", "/ledger"], ["not-found", "/queues/nowhere"],
  ];
}

/** Every page at one width, in one colour. */
async function tour({ open, shoot }, pages, name, options) {
  console.log(`- every page, ${name}`);
  const page = await open(options);
  page.expectStatus(404);
  for (const [title, path] of pages) {
    await page.goto(url + path);
    if (await page.locator("main[data-live]").count()) await page.locator("#pulse.on").waitFor();
    assert.ok(await page.locator("h1").count(), `${title} has a heading`);
    assert.ok(await page.title(), `${title} has a title`);
    const unnamed = await page.evaluate(() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
      .filter((field) => !field.labels?.length && !field.getAttribute("aria-label")).length);
    assert.equal(unnamed, 0, `${title} has fields without a name`);
    await shoot(page, `${name}-${title}`);
  }
}

/** The keyboard alone: the skip link comes first, and the focus is seen. */
async function keyboard({ open, shoot }) {
  console.log("- by keyboard");
  const page = await open();
  await page.goto(`${url}/queues/invoices`);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("Tab");
  for (let presses = 0; presses < 40; presses += 1) {
    if ((await page.evaluate(() => document.activeElement.textContent.trim())) === "Put a message") break;
    await page.keyboard.press("Tab");
  }
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid", "the focus is seen");
  await page.keyboard.press("Enter");
  await page.getByLabel("Body", { exact: true }).waitFor();
  await page.goto(`${url}/queues/invoices`);
  const clear = page.getByRole("button", { name: "Clear the queue" });
  await page.locator("#clear-form summary").focus();
  await page.keyboard.press("Enter");
  assert.ok(await clear.isDisabled(), "nothing is cleared unconfirmed");
  await page.locator("#clear-form input[name=confirm]").fill("invoices");
  assert.ok(await clear.isEnabled());
}

/** Without script: pages, and an action. */
async function withoutScript({ open }) {
  console.log("- without script");
  const page = await open({ script: false });
  await page.goto(`${url}/queues/audit.events`);
  await page.getByRole("link", { name: "Put a message" }).click();
  await page.getByLabel("Body", { exact: true }).fill("plain");
  await page.getByRole("button", { name: "Put", exact: true }).click();
  await shows(page, "is on \"audit.events\"");
}

/** Two pages of one queue: what is done on one is seen on the other, and only then. */
async function live({ open }) {
  console.log("- live");
  const page = await open();
  const put = (body) => page.request.post(`${url}/v1/queues/audit.events/messages`, { data: body });
  await page.goto(`${url}/queues/audit.events`);
  await page.locator("#pulse.on").waitFor();
  const depth = () => page.locator(".tiles dd").first().innerText();
  const before = await depth();
  await page.locator("#clear-form summary").click();
  const confirm = page.locator("#clear-form input[name=confirm]");
  await confirm.fill("half a thought");
  await put("more");
  await page.waitForFunction((text) => document.querySelector(".tiles dd").innerText !== text, before);
  assert.equal(await confirm.inputValue(), "half a thought", "what is typed stays");
  assert.ok(await confirm.isVisible(), "what is open stays open");
}

/** The form of a put: what is wrong is said before anything is put, and nothing typed is lost. */
async function putting({ open, shoot }) {
  console.log("- put JSON, bytes and a file");
  const page = await open();
  page.expectStatus(400);
  const path = `${url}/queues/audit.events/put`;
  const body = page.getByLabel("Body", { exact: true });
  const kind = page.getByLabel("The body is typed as");
  const press = () => page.getByRole("button", { name: "Put", exact: true }).click();
  const last = async () => {
    const text = await page.locator("#note").innerText();
    const id = text.split(" ")[1];
    return page.request.get(`${url}/v1/queues/audit.events/messages/${id}`);
  };
  await page.goto(path);
  await body.fill('{"order": 7,\n "total": }');
  await kind.selectOption("json");
  await page.getByLabel("Priority").fill("12");
  await page.getByLabel("Expiry").fill("10m");
  await press();
  await shows(page, "is not JSON");
  assert.equal(await body.inputValue(), '{"order": 7,\n "total": }', "what was typed is there again");
  assert.equal(await page.getByLabel("Expiry").inputValue(), "10m");
  await shoot(page, "desktop-light-put-wrong");
  await body.fill('{"order": 7,\n "total": 12}');
  await page.getByLabel("Priority").fill("7");
  await press();
  let message = await last();
  assert.equal(message.headers()["content-type"], "application/json");
  assert.equal(message.headers()["oncue-priority"], "7");
  assert.equal(await message.text(), '{"order": 7,\n "total": 12}');
  await page.goto(path);
  await body.fill("00 ff\n7a");
  await kind.selectOption("hex");
  await press();
  assert.deepEqual([...(await (await last()).body())], [0, 255, 122]);
  await page.goto(path);
  const bytes = Buffer.from([...Array(1 << 20).keys()].map((at) => at % 251));
  await page.getByLabel("or a file").setInputFiles({ name: "a.png", mimeType: "image/png", buffer: bytes });
  await press();
  message = await last();
  assert.equal(message.headers()["content-type"], "image/png");
  assert.ok(bytes.equals(await message.body()), "the file is there as it was");
}

await withBrowser({ url, shots, executable }, async (tools) => {
  await story(tools);
  const page = await tools.open();
  const pages = await furnish(page);
  await live(tools);
  await putting(tools);
  await keyboard(tools);
  await withoutScript(tools);
  await tour(tools, pages, "desktop-light", {});
  await tour(tools, pages, "desktop-dark", { dark: true });
  await tour(tools, pages, "phone-light", { width: 390, height: 844 });
  await tour(tools, pages, "phone-dark", { width: 390, height: 844, dark: true });
});
console.log("the console was walked");
