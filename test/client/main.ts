import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import openapiTS, { astToString } from 'openapi-typescript'
import { buildOpenApi, VERSION } from '../../edge/openapi/openapi.ts'
import { areas } from '../../edge/routes/index.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'

/** Generates a TypeScript client package from the API reference (`npm run client -- DIR`). */

const PACKAGE_NAME = 'millrace-client'
const ROOT = new URL('../../', import.meta.url)
const MODULES_FOLDER = fileURLToPath(new URL('node_modules/', ROOT))
const CONNECTION_FOLDER = 'edge/client/'
/** Sources of the package: paths from the root. */
const SOURCES = globSync(['test/client/{index,work*}.ts', `${CONNECTION_FOLDER}*.ts`], { cwd: ROOT })
const run = promisify(execFile)

const { dependencies, devDependencies } = JSON.parse(
  readFileSync(new URL('package.json', ROOT), 'utf8'),
) as Readonly<Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>>
const pinVersions = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { ...dependencies, ...devDependencies }[name]!]))

/**
 * Replaces the package in a folder, with sources in `src` and output in `dist`.
 * @throws if the compiler fails or the folder has other content.
 */
export async function writeClient(folder: string): Promise<void> {
  clearFolder(folder)
  mkdirSync(join(folder, 'src'), { recursive: true })
  const write = (name: string, content: string | object): void =>
    writeFileSync(
      join(folder, name),
      typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`,
    )
  write('src/api.ts', await generateTypes())
  cpSync(new URL('README.md', import.meta.url), join(folder, 'README.md'))
  for (const path of SOURCES) {
    const text = readFileSync(new URL(path, ROOT), 'utf8')
    write(join('src', basename(path)), text.replaceAll(`'../../${CONNECTION_FOLDER}`, "'./"))
  }
  write('package.json', {
    name: PACKAGE_NAME,
    version: VERSION,
    private: true,
    type: 'module',
    exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
    files: ['dist'],
    engines: { node: '>=22.12' },
    scripts: { build: 'tsc' },
    dependencies: pinVersions('eventsource-parser', 'openapi-fetch'),
    devDependencies: pinVersions('typescript'),
  })
  write('tsconfig.json', { compilerOptions: COMPILER_OPTIONS, include: ['src'] })
  await compile(folder)
}

const COMPILER_OPTIONS = {
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
  module: 'nodenext',
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  declaration: true,
  rewriteRelativeImportExtensions: true,
  skipLibCheck: true,
  rootDir: 'src',
  outDir: 'dist',
}

async function generateTypes(): Promise<string> {
  const settings = parseSettings({ DATABASE_URL: 'postgresql://localhost', SECRET_KEY: '-'.repeat(32) })
  const reference = JSON.stringify(buildOpenApi(areas, settings))
  // Make request fields with a default value optional, which the generator does not do by default.
  return astToString(await openapiTS(reference, { defaultNonNullable: false }))
}

/** Compiles the package with the dependencies of this checkout, because the folder has none. */
async function compile(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  symlinkSync(MODULES_FOLDER, modules)
  try {
    await run(process.execPath, [join(MODULES_FOLDER, 'typescript-native/bin/tsc'), '-p', folder])
  } catch (error) {
    throw new Error(String((error as { stdout?: unknown }).stdout), { cause: error })
  } finally {
    rmSync(modules)
  }
}

/** Removes the output of an earlier run. @throws if the folder has other content. */
function clearFolder(folder: string): void {
  if (!existsSync(folder) || readdirSync(folder).length === 0) return
  const file = join(folder, 'package.json')
  const { name } = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown }) : {}
  if (name !== PACKAGE_NAME)
    throw new Error(`${folder} is neither empty nor a ${PACKAGE_NAME} package: choose another folder`)
  rmSync(folder, { recursive: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [given] = process.argv.slice(2)
  if (given === undefined) {
    console.error('Usage: npm run client -- DIR')
    process.exit(2)
  }
  try {
    await writeClient(resolve(given))
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
  console.log(`Wrote the package ${PACKAGE_NAME} to ${resolve(given)}.`)
}
