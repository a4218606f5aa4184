const AT_ONCE = 4;

/** Do something with each item, a few at once; returns those that failed. */
export async function forEach<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<{ item: T; error: Error }[]> {
  const failed: { item: T; error: Error }[] = [];
  const rest = [...items];
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
      const now = item;
      await work(now).catch((error: Error) => failed.push({ item: now, error }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return failed;
}
