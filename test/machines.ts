import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Fresh machines in folders: a minimal Debian by `debootstrap`, a Node of the system, and a checkout of the current commit.
 * Commands run there by `chroot` in namespaces of their own, with or without a network. `MACHINES_DIR` keeps the images.
 */

const IMAGES_FOLDER = process.env.MACHINES_DIR ?? join(tmpdir(), 'millrace-machines')
const CHECKOUT_FOLDER = fileURLToPath(new URL('..', import.meta.url))
// The registry, proxies and certificates of this machine also apply to those that it makes. Under `npm run`, there are
// also npm's paths, which do not.
const FORWARDED_PATTERN =
  /^(npm_config_(registry|ca|cafile|proxy|https_proxy|noproxy|strict_ssl|replace_registry_host)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i
const USER_ID = 1000

/** A fresh machine, and how it is used. */
export interface MachineOptions {
  readonly debian: 'bookworm' | 'trixie'
  /** Major version of the system's Node. */
  readonly node: 20 | 22 | 24
  readonly user: 'root' | 'ann'
  /** Path of the checkout. */
  readonly folder: string
}

/** Output of a command that has ended. */
export interface Ended {
  readonly code: number | null
  readonly output: string
}

export interface Machine {
  /** Runs a shell command in the checkout. */
  run(command: string, options: { readonly hasNetwork: boolean; readonly minutes: number }): Promise<Ended>
  remove(): void
}

/** Creates a machine. @throws if an image or a package cannot be downloaded. */
export function createMachine({ debian, node, user, folder }: MachineOptions): Machine {
  const root = mkdtempSync(join(IMAGES_FOLDER, 'machine-'))
  execFileSync('cp', ['-a', `${createImage(debian)}/.`, root])
  installNode(root, node)
  copyNetworkFiles(root)
  const home = user === 'root' ? '/root' : '/home/ann'
  mkdirSync(join(root, home), { recursive: true })
  if (existsSync('/root/.npmrc')) cpSync('/root/.npmrc', join(root, home, '.npmrc'))
  const checkout = join(root, folder)
  mkdirSync(checkout, { recursive: true })
  execFileSync('sh', ['-c', 'git archive HEAD | tar -x -C "$0"', checkout], { cwd: CHECKOUT_FOLDER })
  const id = user === 'root' ? 0 : USER_ID
  if (id !== 0) {
    writeFileSync(join(root, 'etc/passwd'), `ann:x:${id}:${id}::${home}:/bin/sh\n`, { flag: 'a' })
    execFileSync('chown', ['-R', `${id}:${id}`, join(root, home), checkout])
  }
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => FORWARDED_PATTERN.test(name))),
    PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
    HOME: home,
    LANG: 'C.UTF-8',
  }
  return {
    run: (command, { hasNetwork, minutes }) => {
      const mounts = [
        'mount --rbind /dev "$1/dev"',
        'mount -t tmpfs tmpfs "$1/dev/shm"',
        'mount -t proc proc "$1/proc"',
        ...(hasNetwork ? [] : ['ip link set lo up']),
      ]
      const inside = `cd "$0" && ${command}`
      const script = `${mounts.join(' && ')} && exec chroot --userspec=${id}:${id} "$1" /bin/sh -c "$3" "$2"`
      const spaces = ['--mount', '--pid', '--fork', '--kill-child', ...(hasNetwork ? [] : ['--net'])]
      return runToEnd(['unshare', ...spaces, 'sh', '-c', script, 'sh', root, folder, inside], env, minutes)
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Returns the folder of an image, which it creates once. */
function createImage(debian: string): string {
  const folder = join(IMAGES_FOLDER, debian)
  if (existsSync(folder)) return folder
  mkdirSync(IMAGES_FOLDER, { recursive: true })
  const unfinished = mkdtempSync(`${folder}-`)
  const mirror = process.env.DEBIAN_MIRROR
  const args = ['--variant=minbase', '--include=ca-certificates,curl', debian, unfinished]
  execFileSync('debootstrap', mirror === undefined ? args : [...args, mirror], { stdio: 'pipe' })
  execFileSync('mv', ['-T', unfinished, folder])
  return folder
}

/** Installs a Node and its npm from the package registry, as an installer of Node does. */
function installNode(root: string, major: number): void {
  const target = join(root, 'usr/local')
  unpack(`node-linux-${process.arch}@${major}`, target)
  unpack('npm@10', join(target, 'lib/node_modules/npm'))
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(target, 'bin', name))
}

function unpack(name: string, target: string): void {
  const folder = mkdtempSync(join(IMAGES_FOLDER, 'package-'))
  try {
    const file = execFileSync('npm', ['pack', name, '--silent'], { cwd: folder, encoding: 'utf8' }).trim()
    mkdirSync(target, { recursive: true })
    execFileSync('tar', ['-xf', join(folder, file.split('\n').at(-1)!), '-C', target, '--strip-components=1'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function copyNetworkFiles(root: string): void {
  for (const file of [
    '/etc/resolv.conf',
    '/etc/hosts',
    '/etc/ssl/certs/ca-certificates.crt',
    process.env.NODE_EXTRA_CA_CERTS,
  ])
    if (file !== undefined && existsSync(file)) cpSync(file, join(root, file), { dereference: true })
}

/** Runs a command to its end, or kills it after some minutes. */
async function runToEnd(command: readonly string[], env: NodeJS.ProcessEnv, minutes: number): Promise<Ended> {
  const [program, ...args] = command
  const child = spawn(program!, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: minutes * 60_000,
    killSignal: 'SIGKILL',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.on('error', reject)
  child.on('close', resolve)
  return { code: await promise, output }
}
