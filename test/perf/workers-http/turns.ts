import { rotate } from '../stats.ts'
import { waitUntilQuiet } from '../usage.ts'

export const SAMPLES = Number(process.env.BENCH_SAMPLES ?? 200)
const WARM_UP_SAMPLES = 10

export interface Pairs {
  readonly ours: readonly number[]
  readonly reference: readonly number[]
}

/** Takes samples of ours and of the reference by turns, and leaves out those of the warm-up. */
export async function takeTurns(
  ours: () => Promise<number>,
  reference: () => Promise<number>,
): Promise<Pairs> {
  const pairs = { ours: [] as number[], reference: [] as number[] }
  for (let i = 0; i < SAMPLES + WARM_UP_SAMPLES; i++) {
    if (i % 20 === 0) await waitUntilQuiet()
    const turns = rotate(
      [async () => pairs.ours.push(await ours()), async () => pairs.reference.push(await reference())],
      i,
    )
    for (const turn of turns) await turn()
  }
  return {
    ours: pairs.ours.slice(WARM_UP_SAMPLES),
    reference: pairs.reference.slice(WARM_UP_SAMPLES),
  }
}
