// The console of a host that asks for tokens: in with one, an action, out again. Started by
// tests/e2e/console.rs.

import assert from "node:assert/strict";
import { withBrowser } from "./browser.mjs";

const { ONCUE_URL: url, ONCUE_SHOTS: shots, ONCUE_CHROMIUM: executable, ONCUE_TOKEN: token } = process.env;

async function enter(page, text) {
  await page.getByLabel("Token").fill(text);
  await page.getByRole("button", { name: "Log in" }).click();
}

await withBrowser({ url, shots, executable }, async ({ open, shoot }) => {
  const page = await open();
  console.log("- nobody sees a page without a token");
  await page.goto(`${url}/queues`);
  assert.ok(page.url().startsWith(`${url}/login`), page.url());
  await shoot(page, "login");
  await enter(page, "oncue_wrong");
  await page.getByText("is not one of this host").waitFor();

  console.log("- with one the page that was asked for is there");
  await page.goto(`${url}/queues`);
  await enter(page, token);
  await page.getByRole("heading", { name: "Queues" }).waitFor();
  await page.locator("#pulse.on").waitFor();
  for (const path of ["/", "/queues", "/tasks", "/plugins", "/dead-letters", "/ledger"]) {
    const answer = await page.goto(url + path);
    assert.equal(answer.status(), 200, path);
  }

  console.log("- an action is done");
  await page.goto(url);
  await page.getByRole("button", { name: "Pause the host" }).click();
  await page.getByRole("button", { name: "Resume the host" }).click();
  await page.getByRole("button", { name: "Pause the host" }).waitFor();
  await shoot(page, "in-session");

  console.log("- and nobody is in after leaving");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  await page.goto(`${url}/queues`);
  assert.ok(page.url().startsWith(`${url}/login`), page.url());
});
console.log("the console was entered and left");
