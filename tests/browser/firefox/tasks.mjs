/**
 * The main tasks of the console in the Firefox of this machine: `node tasks.mjs ADDRESS FIREFOX`.
 *
 * Writes a line of JSON for each task: its name and, if it failed, why. Playwright 1.65 cannot do it: it sends
 * `emulation.setMediaFeaturesOverride`, which Firefox ESR 153 does not know.
 */
import puppeteer from "puppeteer-core";

const [address, executablePath] = process.argv.slice(2);
const WAIT_MILLISECONDS = 120_000;
const QUESTION = "How many days of annual leave do I have?";
const FILE = `from-firefox-${Date.now()}.md`; // the console does not replace a document without asking
const PHONE = { width: 390, height: 800 };
const LAPTOP = { width: 1440, height: 900 };

const tasks = {
  "ask and open the original": async (page) => {
    await page.locator("textarea").click(); // headless Firefox has no fine pointer, so nothing has the focus yet
    await page.keyboard.type(QUESTION);
    await page.keyboard.press("Enter");
    await shown(page, ".exchange[aria-busy=false] blockquote", "days of annual leave");
    await press(page, "Open source 1", "button");
    await shown(page, "dialog", "The quoted words are marked.");
    await shown(page, "dialog mark", "days of annual leave");
    await page.keyboard.press("Escape");
    await count(page, "dialog[open]", 0);
  },
  "search and open a result with its words marked": async (page) => {
    await visit(page, "#/search?q=days+of+annual+leave");
    await shown(page, ".result mark", "annual leave");
    await page.locator(".result h3 a, .result h2 a").click();
    await shown(page, "dialog mark", "leave");
    await page.goBack();
    await count(page, "dialog[open]", 0);
  },
  "upload, delete and undo": async (page) => {
    await visit(page, "#/documents");
    await press(page, "Upload", "link");
    await page.locator("dialog select").fill("samples/documents/people/");
    await drop(page, FILE, "The fox of the lighthouse sleeps in the boathouse.");
    await press(page, "Upload 1 file to samples/documents/people/", "button");
    await shown(page, "dialog li", FILE, "Indexed");
    await page.locator(`dialog ::-p-text(${FILE})`).click();
    await press(page, "Delete", "button");
    await press(page, "Undo", "button");
    await visit(page, `#/documents?q=${FILE}`);
    await shown(page, "tbody tr", FILE);
    if ((await page.$eval("main", (main) => main.innerText)).includes("Will be deleted")) throw new Error("not undone");
  },
  "German": async (page) => {
    await page.locator(".account > button").click();
    await page.locator("::-p-text(Deutsch)").click();
    await speaks(page, "de");
    await press(page, "Neue Frage", "link");
    await shown(page, "h1", "Fragen Sie Ihre Dokumente");
    await page.locator(".account > button").click();
    await page.locator("::-p-text(English)").click();
    await speaks(page, "en");
  },
  "the width of a phone": async (page) => {
    await page.setViewport(PHONE);
    for (const place of [`#/ask?q=${QUESTION}`, "#/search?q=annual+leave", "#/documents", "#/quality"]) {
      await visit(page, place);
      await count(page, ".loading, .skeleton, [aria-busy=true]", 0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) throw new Error(`${place} is ${wide} px too wide`);
    }
    await page.setViewport(LAPTOP);
  },
};

async function press(page, name, role) {
  const element = page.locator(`::-p-aria([name="${name}"][role="${role}"])`).setTimeout(WAIT_MILLISECONDS);
  await element.click().catch((error) => {
    throw new Error(`${role} ${name}: ${error.message}`);
  });
}

async function visit(page, place) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, place);
}

/** Wait until something holds in the page; each look is a command of its own, which no policy of the page forbids. */
async function until(page, holds, ...values) {
  const ends = Date.now() + WAIT_MILLISECONDS;
  while (!(await page.evaluate(holds, ...values).catch(() => false))) {
    if (Date.now() > ends) throw new Error(`never: ${values.join(" ")}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function shown(page, selector, ...texts) {
  await until(
    page,
    (selector, ...texts) =>
      [...document.querySelectorAll(selector)].some((each) => texts.every((text) => each.innerText.includes(text))),
    selector,
    ...texts,
  );
}

async function count(page, selector, number) {
  await until(
    page,
    (selector, number) => document.querySelectorAll(selector).length === number,
    selector,
    number,
  );
}

async function speaks(page, language) {
  await until(page, (language) => document.documentElement.lang === language, language);
}

async function drop(page, name, text) {
  await page.evaluate(
    (name, text) => {
      const dropped = new DataTransfer();
      dropped.items.add(new File([text], name));
      const event = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: dropped });
      document.querySelector(".documents-page").dispatchEvent(event);
    },
    name,
    text,
  );
}

const browser = await puppeteer.launch({ browser: "firefox", executablePath });
const complaints = [];
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(WAIT_MILLISECONDS);
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  await page.setViewport(LAPTOP);
  await page.goto(`${address}#/ask`);
  await press(page, "Sign in", "button");
  await press(page, "alice", "button");
  await shown(page, ".account", "alice");
  for (const [name, perform] of Object.entries(tasks)) {
    await page.goto("about:blank");
    await page.goto(`${address}#/ask`);
    await shown(page, ".account", "alice");
    complaints.length = 0;
    const failure = await perform(page).then(
      () => complaints.join("\n"),
      (error) => String(error),
    );
    console.log(JSON.stringify({ name, failure }));
  }
} finally {
  await browser.close();
}
