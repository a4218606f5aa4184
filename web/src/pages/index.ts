/** How each page is loaded, by its name in the address. */
export const LOADERS = {
  ask: () => import("./ask/AskPage"),
  documents: () => import("./documents/DocumentsPage"),
  search: () => import("./search/SearchPage"),
  quality: () => import("./judge/JudgePage"),
  admin: () => import("./operate/OperatePage"),
} as const;
