// A browser that notices what a person would not: errors in the console, refusals by the content
// security policy, requests to anywhere else.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** How long a page may take to show something, in milliseconds; machines of tests are slow. */
export const PATIENCE = 60_000;

/** Starts the browser with a profile of its own, calls `use` with a maker of pages, and ends it. */
export async function withBrowser({ url, shots, executable }, use) {
  mkdirSync(shots, { recursive: true });
  const profiles = [];
  const troubles = [];

  async function open({ width = 1360, height = 900, dark = false, script = true } = {}) {
    const profile = mkdtempSync(join(tmpdir(), "oncue-browser-"));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: executable,
      args: FLAGS,
      viewport: { width, height },
      colorScheme: dark ? "dark" : "light",
      javaScriptEnabled: script,
      isMobile: width < 600,
      hasTouch: width < 600,
      acceptDownloads: true,
    });
    profiles.push({ profile, context });
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(PATIENCE);
    watch(page);
    return page;
  }

  function watch(page) {
    const expected = new Set();
    page.expectStatus = (status) => expected.add(status);
    page.on("console", (message) => {
      const text = message.text();
      const isExpected = [...expected].some((status) => text.includes(`status of ${status}`));
      if (message.type() === "error" && !isExpected) troubles.push(`console at ${page.url()}: ${text}`);
    });
    page.on("pageerror", (error) => troubles.push(`script at ${page.url()}: ${error}`));
    page.on("request", (request) => {
      const to = request.url();
      if (!to.startsWith(url) && !to.startsWith("data:")) troubles.push(`request to ${to}`);
    });
    page.on("response", (response) => {
      if (response.status() >= 400 && !expected.has(response.status())) {
        troubles.push(`${response.status()} from ${response.url()}`);
      }
    });
    page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
  }

  /** Takes a picture, and holds the page to its width. */
  async function shoot(page, name) {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name} is ${wide} pixels wider than the screen`);
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  }

  try {
    await use({ open, shoot, troubles });
    assert.deepEqual(troubles, [], "nothing that a person would not notice");
  } finally {
    for (const { profile, context } of profiles) {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    }
  }
}
