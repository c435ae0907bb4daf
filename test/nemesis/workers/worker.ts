import { createChance } from '../../chance.ts'
import type { Run } from './run.ts'
import { Session } from './session.ts'

/** An HTTP worker in its own process. It works with one lease after another until it is killed. */

process.on('disconnect', () => process.exit())

// Each process of a worker makes other choices.
const chance = createChance(Number(process.env.SEED) + process.pid)

for (let late: Run[] = []; ; ) late = await new Session(chance).work(late)
