import ts from 'typescript'
import { indentTokens } from './structure-parse.ts'

/** Returns the functions of more than `max` lines, as `name: lines`. */
export function findLongFunctions(file: string, text: string, max: number): string[] {
  if (!hasLongStatement(text, max)) return []
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const lineOf = (position: number): number => source.getLineAndCharacterOfPosition(position).line
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const lines = lineOf(node.end) - lineOf(node.getStart()) + 1
      const name = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : null)
      if (lines > max) found.push(`${file}, ${name?.getText() ?? 'a function'}: ${lines}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/**
 * True if a top-level statement may have more than `max` lines. This check is cheap; parsing all files would take a
 * second.
 */
function hasLongStatement(text: string, max: number): boolean {
  let begin = 0
  return [...indentTokens(text).split('\n'), 'end'].some((line, n) => {
    // The formatter indents every line of a statement except the first one and closing brackets.
    if (!/^[\w$/'"`@]/.test(line)) return false
    const lines = n - begin
    begin = n
    return lines > max
  })
}
