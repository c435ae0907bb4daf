import { getPriority, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import type { PasswordAnswer, PasswordCost, PasswordWork } from './work.ts'

/** The inside of a thread that computes hashes. */

// On Linux, 0 is this thread alone (setpriority(2)); elsewhere it would be the whole process. Who reads meanwhile does
// not wait for its turn behind a hash, but takes the core from it. Five lower, a hash still gets a quarter of a core that
// somebody else wants whole.
if (process.platform === 'linux') setPriority(0, Math.min(getPriority(0) + 5, 19))

const ARGON2ID = 2
const PARAMETERS = { algorithm: ARGON2ID, parallelism: 1, ...(workerData as PasswordCost) }

parentPort!.on('message', (work: PasswordWork) => parentPort!.postMessage(answer(work)))

function answer({ password, against }: PasswordWork): PasswordAnswer {
  try {
    return {
      result: against === undefined ? hashSync(password, PARAMETERS) : verifySync(against, password),
    }
  } catch (error) {
    return { error: String(error) }
  }
}
