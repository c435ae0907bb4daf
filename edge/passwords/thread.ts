import { workerData } from 'node:worker_threads'
import { hashArgon2, verifyArgon2 } from './argon2.ts'
import type { PasswordCost } from './messages.ts'
import { serveRequests } from './serve-requests.ts'

/** Entry point of the threads that hash passwords, look up common ones and verify passkeys. */

serveRequests(async (request) => {
  // Importing 300 modules takes about 300 ms. Most threads never need them, so import them on first use. The edge's
  // event loop runs in another thread.
  if ('kind' in request) return (await import('./passkeys.ts')).verifyPasskey(request)
  // Import the list on first use, because it has 0.5 MB and takes milliseconds to load.
  if ('common' in request) return (await import('./common.ts')).isCommonPassword(request.common)
  const { password, against } = request
  return against === undefined
    ? hashArgon2(password, workerData as PasswordCost)
    : verifyArgon2(against, password)
})
