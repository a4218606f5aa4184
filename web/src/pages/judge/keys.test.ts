import { expect, test } from "vitest";
import { MemoryStorage } from "../../testing";
import { areKeysOn, setKeysOn } from "./keys";

test("single keys act until they are turned off, for everybody who uses the browser", () => {
  const storage = new MemoryStorage();
  expect(areKeysOn(storage)).toBe(true);

  setKeysOn(false, storage);
  expect(areKeysOn(storage)).toBe(false);

  setKeysOn(true, storage);
  expect(areKeysOn(storage)).toBe(true);
});
