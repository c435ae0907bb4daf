import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** File with settings that the environment does not set; see `.env.example`. */
export const ENV_FILE = '.env'

/**
 * Blanks the initial environment block of this process, which `/proc/PID/environ` and `ps` show. Deleting a variable
 * does not change that block. Works only on Linux, where a process can overwrite the block without native code.
 */
export function hideEnvironment(): void {
  if (process.platform !== 'linux') return
  try {
    // Assignment copies each variable out of the block, so that this process can still read it.
    for (const [name, value] of Object.entries(process.env)) process.env[name] = value
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // env_start and env_end are fields 50 and 51 (proc(5)). Field 2, the program's name, may contain spaces.
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
    // Some container runtimes have no writable /proc/self/mem; the block then stays readable.
  }
}

/** Returns the paths with secrets: the embedded database, the generated key, unsent mail, and settings. */
export const listSecretPaths = ({ dataDir }: { readonly dataDir: string }): readonly string[] => [
  dataDir,
  ENV_FILE,
]
