import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { type Io, UsageError } from './io.ts'

/**
 * Returns the JSON value of an argument: JSON text, `@FILE`, or `-` for the standard input.
 * @param name of the argument, for errors.
 * @throws UsageError if it is no JSON or the file cannot be read.
 */
export async function readJson(name: string, argument: string, io: Io): Promise<unknown> {
  if (argument === '-') return parse(name, await text(io.stdin))
  if (argument.startsWith('@')) return readJsonFile(name, argument.slice(1))
  return parse(name, argument)
}

/** Returns the JSON value of a file. @throws UsageError */
export async function readJsonFile(name: string, path: string): Promise<unknown> {
  let content: string
  try {
    content = await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a folder' : code
    throw new UsageError(`${name}: can't read ${path}: ${reason}`)
  }
  return parse(`${name}: ${path}`, content)
}

function parse(name: string, content: string): unknown {
  try {
    return JSON.parse(content)
  } catch (error) {
    throw new UsageError(`${name} must be JSON: ${(error as Error).message}`)
  }
}
