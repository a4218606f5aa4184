/**
 * Lighthouse's figures for each page of the console, signed in: `node audit.mjs ADDRESS CHROMIUM USER FORM RUNS`.
 *
 * FORM is mobile or desktop. Writes a line of JSON for each run of each page.
 */
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

const [address, executablePath, user, form, runs] = process.argv.slice(2);
const QUESTION = encodeURIComponent("Who do I call when my laptop is stolen?");
const PAGES = {
  Ask: `#/ask?q=${QUESTION}`,
  Search: `#/search?q=${QUESTION}`,
  Documents: "#/documents",
  Quality: `#/quality?q=${QUESTION}`,
  Admin: "#/admin",
};
const SHOWN = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "speed-index"];

const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  await page.goto(address);
  await page.locator("::-p-aria([name='Sign in'][role='button'])").click();
  await page.locator(`::-p-aria([name='${user}'][role='button'])`).click();
  await page.locator(".account").wait();
  const devtools = await page.createCDPSession();
  for (const [name, hash] of Object.entries(PAGES)) {
    for (let run = 0; run < Number(runs); run++) {
      const options = {
        onlyCategories: ["performance", "accessibility", "best-practices"],
        disableStorageReset: true, // it would sign the person out
        output: "json",
      };
      await page.goto("about:blank");
      await devtools.send("Network.clearBrowserCache"); // each run is a first visit
      const { lhr } = await lighthouse(
        address + hash,
        options,
        form === "desktop" ? desktopConfig : undefined,
        page,
      );
      const failed = Object.values(lhr.categories).flatMap(({ auditRefs }) =>
        auditRefs.filter(
          ({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 0.9,
        ),
      );
      console.log(
        JSON.stringify({
          page: name,
          scores: Object.fromEntries(Object.entries(lhr.categories).map(([key, { score }]) => [key, score])),
          milliseconds: Object.fromEntries(SHOWN.map((id) => [id, lhr.audits[id].numericValue])),
          shift: lhr.audits["cumulative-layout-shift"].numericValue,
          failed: failed.map(({ id }) => id),
        }),
      );
    }
  }
} finally {
  await browser.close();
}
