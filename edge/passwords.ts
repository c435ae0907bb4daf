import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { BCRYPT_BYTES, isBcrypt } from './password-hashes.ts'
import type { PasskeyAnswer, PasskeyWork, PasswordCost, Reply, Result, Work } from './passwords/work.ts'

/**
 * Hashes and verifies passwords, about 22 ms of CPU each, and verifies passkeys, on dedicated threads of low priority. At
 * most one per two cores runs at a time, or a burst of logins would starve the rest of the machine.
 */
export interface Passwords {
  hash(password: string): Promise<string>
  /** Compares with a stored hash; without one it compares with a decoy, so that both take equally long. */
  verify(stored: string | null, password: string): Promise<boolean>
  /**
   * The same for a sign-in, which replaces a hash by other rules than those for new ones: `rehashed` is the one that takes its place,
   * once the password was right; null: it stays.
   */
  check(stored: string | null, password: string): Promise<CheckedPassword>
  verifyPasskey(work: PasskeyWork): Promise<PasskeyAnswer>
  close(): Promise<void>
}

export interface CheckedPassword {
  readonly matches: boolean
  readonly rehashed: string | null
}

interface Task {
  readonly work: Work
  readonly resolve: (result: Result) => void
  readonly reject: (error: Error) => void
}

const THREAD = new URL('./passwords/thread.ts', import.meta.url)

export interface PasswordOptions {
  /** Maximum number of threads. Default: one per two cores. */
  readonly concurrency?: number
  readonly cost?: PasswordCost
}

// 19 MiB and two passes (OWASP Password Storage Cheat Sheet).
const COST: PasswordCost = { memoryCost: 19_456, timeCost: 2 }

/** The threads start on first use. */
export function createPasswords(options: PasswordOptions = {}): Passwords {
  return new PasswordThreads(options)
}

class PasswordThreads implements Passwords {
  readonly #concurrency: number
  readonly #cost: PasswordCost
  readonly #waiting: Task[] = []
  readonly #idle: Worker[] = []
  readonly #busy = new Map<Worker, Task>()
  /** The hash that a password is compared with when none is stored. */
  #decoy: Promise<string> | null = null

  constructor(options: PasswordOptions) {
    this.#concurrency = options.concurrency ?? Math.max(1, Math.floor(availableParallelism() / 2))
    this.#cost = options.cost ?? COST
  }

  hash(password: string): Promise<string> {
    return this.#run({ password }) as Promise<string>
  }

  async verify(stored: string | null, password: string): Promise<boolean> {
    this.#decoy ??= this.hash('no account has this password')
    const matches = await this.#run({ password, against: stored ?? (await this.#decoy) })
    return stored !== null && matches === true
  }

  async check(stored: string | null, password: string): Promise<CheckedPassword> {
    const matches = await this.verify(stored, password)
    const { memoryCost, timeCost } = this.#cost
    const isOwn = stored?.startsWith(`$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`) ?? true
    const isCut = !isOwn && isBcrypt(stored!) && Buffer.byteLength(password) > BCRYPT_BYTES
    if (isOwn || isCut) return { matches, rehashed: null }
    // Also for a wrong password, so that both cost the same.
    const rehashed = await this.hash(password)
    return { matches, rehashed: matches ? rehashed : null }
  }

  verifyPasskey(work: PasskeyWork): Promise<PasskeyAnswer> {
    return this.#run(work) as Promise<PasskeyAnswer>
  }

  async close(): Promise<void> {
    this.#waiting.length = 0
    const workers = [...this.#idle.splice(0), ...this.#busy.keys()]
    await Promise.all(workers.map((worker) => worker.terminate()))
  }

  #run(work: Work): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject })
      const free = this.#idle.pop()
      if (free !== undefined) this.#next(free)
      else if (this.#busy.size < this.#concurrency) this.#next(this.#start())
    })
  }

  #start(): Worker {
    const worker = new Worker(THREAD, { workerData: this.#cost })
    worker.on('message', (reply: Reply) => this.#answered(worker, reply))
    worker.on('error', (error) => this.#lost(worker, error))
    worker.on('exit', () => this.#lost(worker, new Error('A password hashing thread has exited')))
    return worker
  }

  /** Gives a thread the oldest waiting task. */
  #next(worker: Worker): void {
    const task = this.#waiting.shift()
    if (task === undefined) {
      this.#idle.push(worker)
      // An idle thread must not keep the process alive.
      worker.unref()
      return
    }
    this.#busy.set(worker, task)
    worker.ref()
    worker.postMessage(task.work)
  }

  #answered(worker: Worker, reply: Reply): void {
    const task = this.#busy.get(worker)
    this.#busy.delete(worker)
    if ('error' in reply) task?.reject(new Error(reply.error))
    else task?.resolve(reply.result)
    this.#next(worker)
  }

  #lost(worker: Worker, error: Error): void {
    if (this.#idle.includes(worker)) this.#idle.splice(this.#idle.indexOf(worker), 1)
    this.#busy.get(worker)?.reject(error)
    this.#busy.delete(worker)
    if (this.#waiting.length > 0 && this.#busy.size < this.#concurrency) this.#next(this.#start())
  }
}
