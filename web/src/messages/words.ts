/** Numbers, and the words that go with them, in one language. */

interface Forms {
  one: string;
  other: string;
}

export interface Words {
  number: (value: number) => string;
  /** The form of a word for a number: "document", "documents". */
  plural: (value: number, forms: Forms) => string;
  /** A number with its word: "1 document", "2,000 documents". */
  counted: (value: number, one: string, other: string) => string;
  list: (items: readonly string[], type?: "conjunction" | "disjunction") => string;
}

export function wordsIn(language: string): Words {
  const numbers = new Intl.NumberFormat(language);
  const rules = new Intl.PluralRules(language);
  const plural = (value: number, forms: Forms) => forms[rules.select(value) === "one" ? "one" : "other"];
  return {
    number: numbers.format,
    plural,
    counted: (value, one, other) => `${numbers.format(value)} ${plural(value, { one, other })}`,
    list: (items, type = "conjunction") => new Intl.ListFormat(language, { type }).format(items),
  };
}
