import { expect, it } from "vitest";
import { isFinal, isStatus, LISTED, listedStatus, meaning, STATUSES } from "./status";

it("work in progress has the same colour in every status", () => {
  const unfinished = STATUSES.filter((status) => !isFinal(status));
  expect(unfinished).toContain("DELETING");
  expect(new Set(unfinished.map((status) => meaning(status).badge))).toEqual(new Set(["accent"]));
});

it("each status has its own label", () => {
  expect(new Set(STATUSES.map((status) => meaning(status).label)).size).toBe(STATUSES.length);
});

it("documents cannot be listed by UPLOADED, which the registry never stores", () => {
  expect(LISTED).not.toContain("UPLOADED");
  expect(LISTED.length).toBe(STATUSES.length - 1);
  expect(listedStatus("FAILED")).toBe("FAILED");
  expect(listedStatus("UPLOADED")).toBeNull();
});

it("a status of a newer service is not known", () => {
  expect(isStatus("INDEXED")).toBe(true);
  expect(isStatus("ARCHIVED")).toBe(false);
});
