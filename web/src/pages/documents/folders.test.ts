import { expect, test } from "vitest";
import { attributesOf, folderOf, NO_FORM, prefixOf, type WritablePrefix } from "./folders";

const PEOPLE: WritablePrefix = { prefix: "people/", default: "people", labels: ["handbook", "people"] };
const LEGAL: WritablePrefix = { prefix: "legal-", default: null, labels: ["board"] };
const SECRET: WritablePrefix = { prefix: "people/secret/", default: null, labels: ["pay"] };
const EVERYWHERE: WritablePrefix = { prefix: "", default: null, labels: [] };

const me = (...writable: WritablePrefix[]) => ({ writable, label_attribute: "access" });

test.each([
  [[PEOPLE, LEGAL], NO_FORM, "people/"],
  [[PEOPLE, LEGAL], { ...NO_FORM, folder: "/2026" }, "people/2026"],
  [[PEOPLE, LEGAL], { ...NO_FORM, prefix: "legal-", folder: "2026" }, "legal-2026"],
  [[PEOPLE], { ...NO_FORM, prefix: "gone/" }, "people/"],
  [[EVERYWHERE], { ...NO_FORM, folder: "contracts/2026" }, "contracts/2026"],
])("files go under a prefix that people may write: %o %o", (writable, form, folder) => {
  expect(folderOf(form, writable)).toBe(folder);
});

test.each([
  ["people/leave.md", PEOPLE],
  ["people/secret/pay.md", SECRET],
  ["other/leave.md", EVERYWHERE],
])("%s may have the labels of the longest prefix", (key, prefix) => {
  expect(prefixOf(key, [EVERYWHERE, PEOPLE, SECRET, LEGAL])).toBe(prefix);
  expect(prefixOf(key, [LEGAL])).toBeNull();
});

test("a label is one of those that are permitted", () => {
  expect(attributesOf({ ...NO_FORM, label: "handbook" }, me(PEOPLE))).toEqual({ access: "handbook" });
  expect(attributesOf({ ...NO_FORM, label: "board" }, me(PEOPLE))).toEqual({});
  expect(attributesOf({ ...NO_FORM, others: "access=board" }, me(PEOPLE))).toBe("Choose “access” above.");
});

test("a label without a default has to be chosen", () => {
  expect(attributesOf(NO_FORM, me(LEGAL))).toBe("Choose who sees the documents.");
  expect(attributesOf({ ...NO_FORM, label: "board" }, me(LEGAL))).toEqual({ access: "board" });
});

test("without an access file there is no label", () => {
  const nobody = { writable: [EVERYWHERE], label_attribute: null };

  expect(attributesOf({ ...NO_FORM, others: "access=x" }, nobody)).toEqual({ access: "x" });
});
