import { getPriority, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import type { PasswordAnswer, PasswordCost, PasswordWork } from './work.ts'

/** The code of a password hashing thread. */

// On Linux, 0 is this thread alone (setpriority(2)); elsewhere it would be the whole process. Reads then do not wait
// for their turn behind a hash, but take the core from it. Five levels lower, a hash still gets a quarter of a core
// that another thread wants all of.
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
