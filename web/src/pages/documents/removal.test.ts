import { expect, it } from "vitest";
import { ApiError } from "../../api/client";
import { problems } from "../../parts/Undo";
import { removal } from "./removal";

it("deletes after people left the list, and says what was not deleted", async () => {
  const documents = ["a.md", "b.md"].map((key) => ({ id: key, key, uri: `s3://bucket/${key}` }));
  const asked: string[] = [];
  const client = {
    delete: async (_path: string, { id }: { id: string }) => {
      asked.push(id);
      if (id === "b.md") throw new ApiError("The bucket did not delete it", 503, "ServiceUnavailable");
      return { id };
    },
    get: async () => ({ documents: [] }),
  };

  await removal(client as never, documents, () => undefined).run(false);

  expect(asked).toEqual(["a.md", "b.md"]);
  expect(problems.snapshot()).toEqual(["1 document was not deleted: The bucket did not delete it"]);
});
