import fc from 'fast-check'
import { Checks, signatureOf } from './checks.ts'
import { Client, curlOf, type Sent } from './client.ts'
import { type Document, nameOf, operationsOf } from './document.ts'
import { Requests } from './requests.ts'
import type { Service } from './world.ts'

/** Sends so many requests, some at once, and shrinks what comes of those that fail. */

export interface Options {
  readonly requests: number
  readonly seed: number
  /** Part of the name of the operations that are asked; empty: all. */
  readonly only: string
}

export interface Finding {
  readonly signature: string
  /** How many requests failed that way. */
  times: number
  readonly curl: string
  readonly answer: string
}

export interface Report {
  readonly findings: readonly Finding[]
  /** Of how many operations there was a success, and which had none. */
  readonly operations: number
  readonly withoutSuccess: readonly string[]
  readonly statuses: ReadonlyMap<number, number>
  /** How many requests were sent again because their connection was closed before an answer. */
  readonly repeated: number
}

// So many requests are on their way at once.
const LANES = 6
// Values of so many requests are held at once.
const CHUNK = 500
// Beyond it the service is not what it was; more would say no more.
const MAX_FINDINGS = 25
const SHRINK_MS = 10_000
// All of it together: the report has to come before the limit of a test.
const SHRINK_ALL_MS = 40_000

export async function fuzz(service: Service, options: Options): Promise<Report> {
  const run = await Fuzz.start(service, options)
  try {
    await run.all()
    return run.report()
  } finally {
    run.close()
  }
}

class Fuzz {
  private readonly service: Service
  private readonly options: Options
  private readonly client: Client
  private readonly checks: Checks
  private readonly arbitrary: fc.Arbitrary<Sent>
  private readonly names: readonly string[]
  private readonly findings = new Map<string, Finding>()
  private readonly succeeded = new Set<string>()
  private readonly statuses = new Map<number, number>()
  private shrinkMs = SHRINK_ALL_MS

  private constructor(service: Service, options: Options, client: Client, document: Document) {
    this.service = service
    this.options = options
    this.client = client
    this.checks = new Checks(document)
    const operations = operationsOf(document).filter((operation) => nameOf(operation).includes(options.only))
    if (operations.length === 0) throw new Error(`No operation has ${options.only} in its name`)
    this.names = operations.map(nameOf)
    this.arbitrary = new Requests(document.components.schemas, service.seeds).of(operations)
  }

  static async start(service: Service, options: Options): Promise<Fuzz> {
    const client = new Client(service.edge.ready.port!, service.callers)
    const response = await fetch(`${client.base}/openapi.json`)
    return new Fuzz(service, options, client, (await response.json()) as Document)
  }

  async all(): Promise<void> {
    for (let from = 0; from < this.options.requests; from += CHUNK) {
      const seed = this.options.seed + from
      const count = Math.min(CHUNK, this.options.requests - from)
      await this.chunk(seed, fc.sample(this.arbitrary, { seed, numRuns: count }))
      if (this.findings.size >= MAX_FINDINGS || this.gone() !== null) return
    }
  }

  report(): Report {
    const withoutSuccess = this.names.filter((name) => !this.succeeded.has(name))
    const findings = [...this.findings.values()]
    const { statuses } = this
    return {
      ...{ findings, withoutSuccess, operations: this.names.length, statuses },
      repeated: this.client.repeated,
    }
  }

  close(): void {
    this.client.close()
  }

  private async chunk(seed: number, requests: Sent[]): Promise<void> {
    const failed: { index: number; signature: string }[] = []
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < requests.length && this.gone() === null) {
        const index = next++
        const signature = await this.failure(requests[index]!)
        const known = signature === null ? undefined : this.findings.get(signature)
        if (known !== undefined) known.times++
        else if (signature !== null) failed.push({ index, signature })
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    for (const { index, signature } of failed) {
      const known = this.findings.get(signature)
      if (known !== undefined) known.times++
      else this.findings.set(signature, await this.shrunk(seed, index, signature, requests[index]!))
    }
  }

  /** Sends a request; the name of what is wrong with what came of it. */
  private async failure(sent: Sent): Promise<string | null> {
    try {
      const answer = await this.client.send(sent)
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1)
      if (answer.status < 400) this.succeeded.add(nameOf(sent.operation))
      const problem = this.checks.problemOf(sent, answer)
      return problem === null ? null : signatureOf(sent, answer.status, problem)
    } catch (error) {
      const gone = this.gone()
      return signatureOf(sent, 0, gone ?? (error as NodeJS.ErrnoException).code ?? (error as Error).message)
    }
  }

  /** The smallest request that fails in the same way; the one that failed when it does so no more. */
  private async shrunk(seed: number, index: number, signature: string, first: Sent): Promise<Finding> {
    let smallest = first
    const fails = async (sent: Sent): Promise<boolean> => {
      if (this.gone() !== null) return true
      const isSame = (await this.failure(sent)) === signature
      if (isSame) smallest = sent
      return !isSame
    }
    const limit = Math.min(SHRINK_MS, this.shrinkMs)
    const from = performance.now()
    if (this.gone() === null && limit > 0)
      await fc.check(fc.asyncProperty(this.arbitrary, fails), {
        ...{ seed, path: String(index), numRuns: 1, interruptAfterTimeLimit: limit },
      })
    this.shrinkMs -= performance.now() - from
    const answer = await this.client.send(smallest).then(
      ({ status, bytes }) =>
        `${status} ${bytes
          .toString()
          .slice(0, 300)
          .replace(/[^\x20-\x7e]/g, '.')}`,
      (error: Error) => error.message,
    )
    return { signature, times: 1, curl: curlOf(smallest), answer }
  }

  /** Which process has ended, and how; null while both live. */
  private gone(): string | null {
    for (const [name, { process }] of [
      ['edge', this.service.edge],
      ['worker', this.service.worker],
    ] as const)
      if (process.exitCode !== null || process.signalCode !== null)
        return `the ${name} ended with ${process.exitCode ?? process.signalCode}`
    return null
  }
}
