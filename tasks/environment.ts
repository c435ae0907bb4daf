import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** Settings that the environment does not have; see `.env.example`. */
export const ENV_FILE = '.env'

/**
 * Blanks the block of variables that the process was started with, which `/proc/PID/environ` and `ps` show: deleting a
 * variable does not change it. Only Linux lets a process do that without native code.
 */
export function hideEnvironment(): void {
  if (process.platform !== 'linux') return
  try {
    // Moves each variable out of the block: this process still reads them all.
    for (const [name, value] of Object.entries(process.env)) process.env[name] = value
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // env_start and env_end, the fields 50 and 51 (proc(5)); the second one, the program's name, may contain spaces.
    const [start, end] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(47, 49)
      .map(Number) as [number, number]
    const memory = openSync('/proc/self/mem', 'r+')
    try {
      writeSync(memory, Buffer.alloc(end - start), 0, end - start, start)
    } finally {
      closeSync(memory)
    }
  } catch {
    // Some container runtimes have no writable /proc/self/mem: the block stays readable.
  }
}

/** The places of secrets on disk: the embedded database, the generated key, unsent mails, and settings. */
export const secretPaths = ({ dataDir }: { readonly dataDir: string }): readonly string[] => [
  dataDir,
  ENV_FILE,
]
