import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reports CPU seconds by file and kind, read from `/proc`: `TEST_PROFILE=1 npm test`. */

/** CPU seconds of a test file: its process with all threads, exited child processes, and its database's backends. */
export interface FileCpu {
  readonly file: string
  readonly own: number
  readonly children: number
  readonly postgres: number
}

// USER_HZ is 100 on every Linux that Node supports.
const TICKS_PER_SECOND = 100
const SAMPLE_MS = 100
const DATABASE_NAME = /\b(test_f(\d+)_\w+)/

/** Returns user plus system seconds of a process, and of the children that it has waited for. */
function readCpu(pid: number | 'self'): readonly [own: number, children: number] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The command name may contain spaces and brackets, so count fields from its end.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15) as [
    number,
    number,
    number,
    number,
  ]
  return [(user + system) / TICKS_PER_SECOND, (childrenUser + childrenSystem) / TICKS_PER_SECOND]
}

/**
 * Starts to measure one file in its process. Call the returned function after the file, to write `N.json` into the
 * folder.
 */
export function profileFile(folder: string, number: number, file: string): () => void {
  const [own, children] = readCpu('self')
  return () => {
    const after = readCpu('self')
    const cpu = { file, own: after[0] - own, children: after[1] - children }
    writeFileSync(join(folder, `${number}.json`), JSON.stringify(cpu))
  }
}

/** Returns the process id of the server that started a backend. */
export const readPostmasterPid = (backend: number): number =>
  Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${backend}/status`, 'utf8'))![1])

/**
 * Samples the backends of a PostgreSQL server. The CPU time of backends that exit between two samples is not
 * attributed.
 */
export class PostgresProfile {
  readonly #postmaster: number
  readonly #started: number
  readonly #seen = new Map<number, { readonly file: number | null; seconds: number }>()
  readonly #byFile = new Map<number, number>()
  readonly #timer: NodeJS.Timeout

  constructor(postmaster: number) {
    this.#postmaster = postmaster
    this.#started = this.#total()
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS)
  }

  /** Stops sampling, and returns each file's seconds by file number and the server's total seconds. */
  end(): { readonly byFile: ReadonlyMap<number, number>; readonly total: number } {
    this.#sample()
    clearInterval(this.#timer)
    for (const pid of this.#seen.keys()) this.#forget(pid)
    return { byFile: this.#byFile, total: this.#total() - this.#started }
  }

  #sample(): void {
    const backends = this.#backends()
    for (const pid of this.#seen.keys()) if (!backends.includes(pid)) this.#forget(pid)
    for (const pid of backends) {
      try {
        const known = this.#seen.get(pid) ?? { file: readFileNumber(pid), seconds: 0 }
        known.seconds = readCpu(pid)[0]
        this.#seen.set(pid, known)
      } catch {
        // The backend has just exited.
      }
    }
  }

  #forget(pid: number): void {
    const { file, seconds } = this.#seen.get(pid)!
    this.#seen.delete(pid)
    if (file !== null) this.#byFile.set(file, (this.#byFile.get(file) ?? 0) + seconds)
  }

  #total(): number {
    const [own, ended] = readCpu(this.#postmaster)
    return this.#backends().reduce((sum, pid) => sum + (readAliveCpu(pid) ?? 0), own + ended)
  }

  #backends(): number[] {
    const pid = this.#postmaster
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  }
}

function readAliveCpu(pid: number): number | null {
  try {
    return readCpu(pid)[0]
  } catch {
    return null
  }
}

/** Returns the number of the file whose database a backend serves; null for other processes of the server. */
function readFileNumber(pid: number): number | null {
  const found = DATABASE_NAME.exec(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  return found === null ? null : Number(found[2])
}

/** Returns the table that the run prints: sums by ring, then all files, most expensive first. */
export function formatProfile(folder: string, { byFile, total }: ReturnType<PostgresProfile['end']>): string {
  const files = readdirSync(folder).map((name): FileCpu => {
    const cpu = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Omit<FileCpu, 'postgres'>
    return { ...cpu, postgres: byFile.get(Number.parseInt(name, 10)) ?? 0 }
  })
  const rings = [...Map.groupBy(files, ({ file }) => file.split('/')[1]!)].map(([ring, of]) =>
    sumFiles(ring, of),
  )
  const attributed = files.reduce((seconds, { postgres }) => seconds + postgres, 0)
  const rest = {
    file: 'PostgreSQL: shared databases, set-up, background',
    own: 0,
    children: 0,
    postgres: total - attributed,
  }
  const costliest = files.sort((a, b) => secondsOf(b) - secondsOf(a))
  const rows = [...rings, rest, sumFiles('in all', [...files, rest]), ...costliest]
  return ['CPU seconds:   total     own children postgres', ...rows.map(formatLine)].join('\n')
}

const secondsOf = ({ own, children, postgres }: FileCpu): number => own + children + postgres

function sumFiles(file: string, files: readonly FileCpu[]): FileCpu {
  const of = (kind: 'own' | 'children' | 'postgres'): number =>
    files.reduce((seconds, cpu) => seconds + cpu[kind], 0)
  return { file, own: of('own'), children: of('children'), postgres: of('postgres') }
}

function formatLine(cpu: FileCpu): string {
  const numbers = [secondsOf(cpu), cpu.own, cpu.children, cpu.postgres]
  return `${' '.repeat(12)}${numbers.map((seconds) => seconds.toFixed(1).padStart(8)).join(' ')}  ${cpu.file}`
}
