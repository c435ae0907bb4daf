import { getPriority, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import type { PasswordCost, PasswordWork, Reply, Work } from './work.ts'

/** The code of a thread that hashes passwords and verifies passkeys. */

// On Linux, 0 is this thread alone (setpriority(2)); elsewhere it would be the whole process. Reads then do not wait
// for their turn behind a hash, but take the core from it. Five levels lower, a hash still gets a quarter of a core
// that another thread wants all of.
if (process.platform === 'linux') setPriority(0, Math.min(getPriority(0) + 5, 19))

const ARGON2ID = 2
const PARAMETERS = { algorithm: ARGON2ID, parallelism: 1, ...(workerData as PasswordCost) }

parentPort!.on('message', async (work: Work) => parentPort!.postMessage(await reply(work)))

async function reply(work: Work): Promise<Reply> {
  try {
    // 300 modules, which take as many ms: most threads never need them, and no event loop waits for them.
    if ('kind' in work) return { result: await (await import('./passkeys.ts')).verifyPasskey(work) }
    return { result: await resultOf(work) }
  } catch (error) {
    return { error: String(error) }
  }
}

async function resultOf({ password, against }: PasswordWork): Promise<string | boolean> {
  if (against === undefined) return hashSync(password, PARAMETERS)
  if (against.startsWith('$argon2')) return verifySync(against, password)
  // Most threads never need it.
  const { verifyForeign } = await import('./foreign.ts')
  return verifyForeign(against, password)
}
