import type { ask as english } from "../en/ask";
import { wordsIn } from "../words";

const { counted, list, number, plural } = wordsIn("de");

export const ask: typeof english = {
  title: "Fragen Sie Ihre Dokumente",
  placeholder: "Was möchten Sie wissen?",
  followUp: "Weitere Frage stellen",
  ask: "Fragen",
  askAgain: "Erneut fragen",
  stop: "Anhalten",
  changed: "Mit „Erneut fragen“ stellen Sie dieselbe Frage mit Ihren Änderungen.",

  question: "Ihre Frage",
  edit: "Frage bearbeiten",
  answerIs: (answer) => `Antwort: ${answer}`,
  noAnswerIs: (answer) => `Keine Antwort: ${answer}`,
  searching: "Dokumente werden durchsucht …",
  reading: (count) => `${counted(count, "Textstelle wird", "Textstellen werden")} gelesen …`,
  stalled:
    "Seit 10 Sekunden ist nichts angekommen. Die Antwort kann noch kommen. Sie können auch anhalten und erneut fragen.",
  stopped: "Angehalten",
  youStopped: "Sie haben diese Antwort angehalten. Der Text wurde nicht als Ganzes geprüft.",
  youStoppedEarly: "Sie haben diese Antwort angehalten, bevor sie begann.",
  cameBack: "Diese Frage wurde noch nicht beantwortet.",
  askItAgain: "Erneut fragen",
  incomplete: "Die Suche ist unvollständig: Ein Teil ist fehlgeschlagen, deshalb können Quellen fehlen.",
  searchedFor: "Gesucht wurde:",

  openSource: (source) => `Quelle ${source} öffnen`,
  openMarked: "Mit markierter Stelle öffnen",
  openOriginal: "Original öffnen",
  current: "aktuell",
  olderVersions: (count) => counted(count, "ältere Version", "ältere Versionen"),
  otherwise: (count, figure, version) =>
    `${counted(count, "ältere Version", "ältere Versionen")} ${plural(count, { one: "sagt", other: "sagen" })} etwas anderes: ${figure}${
      version ? ` (${version})` : ""
    }`,
  source: (source) => `Quelle ${source}`,
  sources: "Quellen",
  notCited: (count) => `${counted(count, "weitere Textstelle", "weitere Textstellen")}, nicht zitiert`,

  unsupported: "nicht belegt",
  unsupportedWhy: "Keine Quelle belegt diesen Satz",
  partly: "teilweise belegt",
  notSupported: "nicht belegt",
  judgedSo: "Das Modell hat diesen Satz mit den zitierten Textstellen verglichen",
  wordForWord: (quotations) => counted(quotations, "wörtliches Zitat", "wörtliche Zitate"),
  allCited: (sentences) =>
    `${counted(sentences, "Satz", "Sätze")}, ${plural(sentences, { one: "mit Quelle", other: "jeder mit Quelle" })}`,
  someSupported: (supported, all) =>
    `${number(supported)} von ${counted(all, "Satz", "Sätzen")} ${plural(supported, { one: "ist", other: "sind" })} belegt`,
  fromDocuments: (documents) => `aus ${counted(documents, "Dokument", "Dokumenten")}`,
  confidence: { 3: "Hohe Sicherheit", 2: "Mittlere Sicherheit", 1: "Geringe Sicherheit" },
  confidenceWhy: (share) =>
    `Mit einer Wahrscheinlichkeit von ${share} beantworten die Zitate die Frage. Hoch: ab 80 %. Mittel: ab 60 %.`,
  howMade: "Wie diese Antwort entstand",
  noModel: "Es wurde kein Modell aufgerufen",
  withoutModel: "Aus den Dokumenten zitiert, ohne Modell",
  writtenBy: (model) => `Geschrieben von ${model}`,
  took: (duration) => `Dauer: ${duration}`,
  cutOff: "Bei der maximalen Länge abgeschnitten",
  removedCitations: (count) =>
    `${counted(count, "Verweis", "Verweise")} ohne Quelle ${plural(count, { one: "wurde", other: "wurden" })} entfernt`,

  copy: "Kopieren",
  share: "Teilen",
  shareQuestion: "Link zu dieser Frage kopieren",
  shareHint:
    "Wer den Link öffnet, stellt die Frage erneut. Andere haben vielleicht andere Rechte, und damit eine andere Antwort.",
  whySources: "Warum diese Quellen?",

  shareConversation: "Unterhaltung teilen",
  shareRights:
    "Wer sich anmeldet und den Link hat, kann die Unterhaltung lesen, auch was Sie noch hinzufügen. Andere haben vielleicht andere Rechte: Sie sehen nur Antworten aus Dokumenten, die sie sehen dürfen.",
  link: "Adresse",
  makeLink: "Link erstellen",
  showLink: "Link anzeigen",
  copyLink: "Link kopieren",
  stopSharing: "Nicht mehr teilen",
  linkIsReady: "Der Link ist bereit",
  linkIsGone: "Der Link gilt nicht mehr",
  sharedBy: (owner) => `Geteilt von ${owner}. Sie sehen nur Antworten aus Dokumenten, die Sie sehen dürfen.`,
  withheldTurns: (count) => `${counted(count, "Antwort fehlt", "Antworten fehlen")}.`,
  withheldRights: "Sie dürfen nicht alle Dokumente sehen, aus denen diese Antwort entstand.",
  withheldDeleted: "Ein Dokument, aus dem diese Antwort entstand, wurde gelöscht.",
  changedSince: (names) => `Seit dieser Antwort geändert: ${list(names)}.`,
  notSaved: (reason) => `Diese Antwort ist nicht in Ihren Unterhaltungen: ${reason}`,
  signInToSee: "Unterhaltungen gehören Personen. Melden Sie sich an, um zu sehen, was Sie sehen dürfen.",
  theConversation: "die Unterhaltung",

  conversations: "Unterhaltungen",
  searchConversations: "Unterhaltungen durchsuchen",
  noConversations: "Hier stehen künftig Ihre Fragen.",
  noConversationFound: "Keine Unterhaltung hat diese Wörter.",
  notKept: "Unterhaltungen werden hier nicht gespeichert.",
  moreConversations: "Ältere zeigen",
  ages: { today: "Heute", week: "Letzte sieben Tage", older: "Älter" },
  moreOf: (title) => `Mehr: ${title}`,
  rename: "Umbenennen",
  newName: "Neuer Name; Enter speichert ihn",
  exportMarkdown: "Als Markdown exportieren",
  delete: "Löschen",
  willBeDeleted: (title) => `„${title}“ wird gelöscht`,
  notDeleted: (title, reason) => `„${title}“ wurde nicht gelöscht. ${reason}`,

  noAnswer: "Die Dokumente beantworten diese Frage nicht.",
  mayNotAnswer: "Die Dokumente beantworten diese Frage vielleicht nicht. Das sind die ähnlichsten Stellen.",
  missing: (values) => `Kein durchsuchbares Dokument hat ${list(values)}.`,
  closest: "Ähnlichste Dokumente",
  closestPassages: "Ähnlichste Stellen",
  searchInstead: "Stattdessen suchen",
  findMissing: "Fehlendes Dokument suchen",
  findMissingHint:
    "Mit Wörtern aus Name, Ordner oder Attributen; auch Dokumente, die nicht durchsucht werden können.",
  reportGap: "Lücke melden",
  reported: "Gemeldet",
  reportedThanks: "Wer Dokumente hinzufügen kann, sieht Ihre Meldung.",
  reportFailed: (reason) => `Die Meldung konnte nicht gesendet werden: ${reason}`,

  firstSteps: "Es gibt noch keine Dokumente",
  upload: "Dokumente hochladen",
  uploadHint: "PDF, Word, Excel, HTML, Markdown, E-Mails und mehr.",
  toUpload: "Zu den Dokumenten",
  askFirst: "Eine Frage stellen",
  askFirstHint: "Antworten zitieren die Dokumente, und jedes Zitat öffnet sich mit markierter Stelle.",
  invite: "Andere einladen",
  inviteHint: "Sie melden sich unter dieser Adresse an und sehen, worauf sie Zugriff haben.",
  copyAddress: "Adresse kopieren",
};
