export default function JudgePage() {
  return <h1>Judge</h1>;
}
