// Runs one named case of a client's file: node FILE CASE. Exit code 0: as expected; else what was
// seen instead is on standard error.
import process from 'node:process';

export const url = process.env.BERTH_URL;
export const grpcAddress = process.env.BERTH_GRPC;
export const model = process.env.MODEL ?? 'demo';
export const QUESTION = 'What is the capital of France?';
export const ANSWER = 'The capital of France is Paris.';

// For the scenario that started this: what it waits for, one line of standard output each.
export function tell(line) {
  process.stdout.write(`${line}\n`);
}

export async function run(cases) {
  const name = process.argv[2];
  if (!(name in cases)) {
    console.error(`unknown case ${name}; there are: ${Object.keys(cases).join(' ')}`);
    process.exit(2);
  }
  try {
    await cases[name]();
    process.exit(0);
  } catch (problem) {
    console.error(problem);
    process.exit(1);
  }
}
