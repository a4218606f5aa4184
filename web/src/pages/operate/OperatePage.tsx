export default function OperatePage() {
  return <h1>Operate</h1>;
}
