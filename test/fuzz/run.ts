import fc from 'fast-check'
import { Checks, signatureOf } from './checks.ts'
import { Client, curlOf, type SentRequest } from './client.ts'
import { type Document, nameOf, operationsOf } from './document.ts'
import { Requests } from './requests.ts'
import type { Service } from './world.ts'

/** Sends random requests concurrently and shrinks those that fail. */

export interface Options {
  readonly requests: number
  readonly seed: number
  /** Selects operations whose name contains this text; '' selects all. */
  readonly only: string
}

export interface Finding {
  readonly signature: string
  /** Number of requests that failed in this way. */
  times: number
  readonly curl: string
  readonly answer: string
}

export interface Report {
  readonly findings: readonly Finding[]
  /** Number of operations; `withoutSuccess` names those that never answered successfully. */
  readonly operations: number
  readonly withoutSuccess: readonly string[]
  readonly statuses: ReadonlyMap<number, number>
  /** Number of requests that were retried because their connection closed before an answer. */
  readonly retries: number
}

// Concurrent requests.
const CONCURRENCY = 6
// Number of requests whose values are in memory at the same time.
const CHUNK_SIZE = 500
// With this many findings, the service is clearly broken, and further requests would add nothing.
const MAX_FINDINGS = 25
const MAX_SHRINK_MS = 10_000
// Maximum total time for shrinking, short enough that the report comes before the test's time limit.
const MAX_SHRINK_TOTAL_MS = 40_000

export async function fuzz(service: Service, options: Options): Promise<Report> {
  const run = await FuzzRun.start(service, options)
  try {
    await run.all()
    return run.report()
  } finally {
    run.close()
  }
}

class FuzzRun {
  private readonly service: Service
  private readonly options: Options
  private readonly client: Client
  private readonly checks: Checks
  private readonly arbitrary: fc.Arbitrary<SentRequest>
  private readonly names: readonly string[]
  private readonly findings = new Map<string, Finding>()
  private readonly succeeded = new Set<string>()
  private readonly statuses = new Map<number, number>()
  private shrinkMs = MAX_SHRINK_TOTAL_MS

  private constructor(service: Service, options: Options, client: Client, document: Document) {
    this.service = service
    this.options = options
    this.client = client
    this.checks = new Checks(document)
    const operations = operationsOf(document).filter((operation) => nameOf(operation).includes(options.only))
    if (operations.length === 0) throw new Error(`No operation's name contains ${options.only}`)
    this.names = operations.map(nameOf)
    this.arbitrary = new Requests(document.components.schemas, service.seeds).of(operations)
  }

  static async start(service: Service, options: Options): Promise<FuzzRun> {
    const client = new Client(service.edge.ready.port!, service.callers)
    const response = await fetch(`${client.base}/openapi.json`)
    return new FuzzRun(service, options, client, (await response.json()) as Document)
  }

  async all(): Promise<void> {
    for (let from = 0; from < this.options.requests; from += CHUNK_SIZE) {
      const seed = this.options.seed + from
      const count = Math.min(CHUNK_SIZE, this.options.requests - from)
      await this.runChunk(seed, fc.sample(this.arbitrary, { seed, numRuns: count }))
      if (this.findings.size >= MAX_FINDINGS || this.describeExit() !== null) return
    }
  }

  report(): Report {
    const withoutSuccess = this.names.filter((name) => !this.succeeded.has(name))
    const findings = [...this.findings.values()]
    const { statuses } = this
    return {
      ...{ findings, withoutSuccess, operations: this.names.length, statuses },
      retries: this.client.retries,
    }
  }

  close(): void {
    this.client.close()
  }

  private async runChunk(seed: number, requests: SentRequest[]): Promise<void> {
    const failed: { index: number; signature: string }[] = []
    let next = 0
    const sendNext = async (): Promise<void> => {
      while (next < requests.length && this.describeExit() === null) {
        const index = next++
        const signature = await this.findFailure(requests[index]!)
        const known = signature === null ? undefined : this.findings.get(signature)
        if (known !== undefined) known.times++
        else if (signature !== null) failed.push({ index, signature })
      }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, sendNext))
    for (const { index, signature } of failed) {
      const known = this.findings.get(signature)
      if (known !== undefined) known.times++
      else this.findings.set(signature, await this.shrink(seed, index, signature, requests[index]!))
    }
  }

  /** Sends a request and returns the signature of its failure; null if the answer is correct. */
  private async findFailure(sent: SentRequest): Promise<string | null> {
    try {
      const answer = await this.client.send(sent)
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1)
      if (answer.status < 400) this.succeeded.add(nameOf(sent.operation))
      const problem = this.checks.findProblem(sent, answer)
      return problem === null ? null : signatureOf(sent, answer.status, problem)
    } catch (error) {
      const exitedProcess = this.describeExit()
      return signatureOf(
        sent,
        0,
        exitedProcess ?? (error as NodeJS.ErrnoException).code ?? (error as Error).message,
      )
    }
  }

  /** Shrinks a request while it fails in the same way. Returns the original if it no longer fails. */
  private async shrink(seed: number, index: number, signature: string, first: SentRequest): Promise<Finding> {
    let smallest = first
    const fails = async (sent: SentRequest): Promise<boolean> => {
      if (this.describeExit() !== null) return true
      const isSame = (await this.findFailure(sent)) === signature
      if (isSame) smallest = sent
      return !isSame
    }
    const limit = Math.min(MAX_SHRINK_MS, this.shrinkMs)
    const from = performance.now()
    if (this.describeExit() === null && limit > 0)
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

  /** Returns a description of a process that has exited; null while both are running. */
  private describeExit(): string | null {
    for (const [name, { process }] of [
      ['edge', this.service.edge],
      ['worker', this.service.worker],
    ] as const)
      if (process.exitCode !== null || process.signalCode !== null)
        return `the ${name} ended with ${process.exitCode ?? process.signalCode}`
    return null
  }
}
