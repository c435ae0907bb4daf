import { workerData } from 'node:worker_threads'
import { hashArgon2, verifyArgon2 } from './argon2.ts'
import type { PasswordCost } from './messages.ts'
import { serveRequests } from './serve-requests.ts'

/** Entry point of the threads that hash passwords, look up common ones and verify passkeys. */

serveRequests(async (request) => {
  // Importing 300 modules takes about 300 ms. Most threads never need them, and here the import blocks no event loop.
  if ('kind' in request) return (await import('./passkeys.ts')).verifyPasskey(request)
  // Importing the list of 0.5 MB takes milliseconds.
  if ('common' in request) return (await import('./common.ts')).isCommonPassword(request.common)
  const { password, against } = request
  return against === undefined
    ? hashArgon2(password, workerData as PasswordCost)
    : verifyArgon2(against, password)
})
