import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openChildCacheFolder } from '../../tasks/platform/code-cache.ts'

/** Protections that the operating system provides, in addition to Node's permission model. */
export interface Sandbox {
  /** True if a child has its own user, network and mount namespaces: it reaches no network, other process or hidden path. */
  readonly isIsolated: boolean
  /** True if no executable can raise the child's privileges (`no_new_privs`). */
  readonly isUnprivileged: boolean
  /** Prefix of the child's command line. */
  readonly command: readonly string[]
}

export interface SandboxOptions {
  /** The child's main module. */
  readonly entry: string
  /** Folders and files that are hidden from an isolated child. */
  readonly hidden?: readonly string[]
  /**
   * Paths, besides the code, that the child's main thread may read. Each may end with `*`. Paths in `writes` are
   * readable, too.
   */
  readonly reads?: readonly string[]
  readonly writes?: readonly string[]
}

// Hides each folder or file named before `--` below a mount, then runs the command after `--`.
const HIDE_SCRIPT = `
  while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mount -n -t tmpfs -o ro,size=4k none "$1" || exit
    elif [ -e "$1" ]; then mount -n --bind /dev/null "$1" || exit
    fi
    shift
  done
  shift
  exec "$@"`
const CHECK_SCRIPT = 'test -x "$0" && test -r "$1" && test -w "$2"'
const PROBE_TIMEOUT_MS = 5_000
const NO_NEW_PRIVILEGES_COMMAND = ['setpriv', '--no-new-privs']
const NO_CAPABILITIES_FLAGS = ['--bounding-set=-all', '--inh-caps=-all']
const UNSHARE_COMMAND = ['unshare', '--user', '--map-root-user', '--net', '--mount']

/**
 * Probes the available protections. Isolation fails where user namespaces are forbidden or a hidden folder contains the
 * code.
 */
export function probeSandbox({ entry, hidden = [] }: SandboxOptions): Sandbox {
  const hideCommand = ['/bin/sh', '-c', HIDE_SCRIPT, 'sh', ...hidden.map((path) => resolve(path)), '--']
  const isolated = [
    ...UNSHARE_COMMAND,
    ...hideCommand,
    ...NO_NEW_PRIVILEGES_COMMAND,
    ...NO_CAPABILITIES_FLAGS,
  ]
  if (canRun(isolated, entry)) return { isIsolated: true, isUnprivileged: true, command: isolated }
  const isUnprivileged = canRun(NO_NEW_PRIVILEGES_COMMAND, entry)
  return { isIsolated: false, isUnprivileged, command: isUnprivileged ? NO_NEW_PRIVILEGES_COMMAND : [] }
}

function canRun([file, ...args]: readonly string[], entry: string): boolean {
  if (process.platform !== 'linux') return false
  const check = ['/bin/sh', '-c', CHECK_SCRIPT, process.execPath, entry, tmpdir()]
  const options = { cwd: '/', stdio: 'ignore', timeout: PROBE_TIMEOUT_MS } as const
  return spawnSync(file!, [...args, ...check], options).status === 0
}

const PROJECT_ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Returns the flags of Node's permission model: a child reads its code, writes its cache and OCR data, and starts no
 * process. The OCR engine needs a thread, to which Node does not apply the model.
 */
export function createPermissionFlags({ entry, reads = [], writes = [] }: SandboxOptions): string[] {
  const modules = join(PROJECT_ROOT, 'node_modules')
  const code = ['workers', 'tasks', 'sql', 'package.json'].map((name) => join(PROJECT_ROOT, name))
  const cache = openChildCacheFolder()
  const writable = [join(tmpdir(), 'tesseract-*'), ...(cache === null ? [] : [cache]), ...writes]
  return [
    '--permission',
    '--allow-addons',
    '--allow-worker',
    '--disable-warning=SecurityWarning',
    ...[...code, modules, realpathSync(modules), dirname(entry), ...reads, ...writable].map(
      (path) => `--allow-fs-read=${path}`,
    ),
    ...writable.map((path) => `--allow-fs-write=${path}`),
  ]
}
