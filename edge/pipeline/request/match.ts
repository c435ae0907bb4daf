import { listAdmittingScopes } from '../access/scopes.ts'
import type { AnyRoute, Area } from '../route.ts'

/** A route with its area. */
export interface RouteEntry {
  readonly area: Area
  readonly route: AnyRoute
  /** Path pattern with the area's prefix, as shown in metrics and the reference. */
  readonly pattern: string
  /** An API key needs one of these scopes. The first one grants the fewest rights. */
  readonly scopes: readonly string[]
}

export interface Match {
  /** Entries by method name in upper case. */
  readonly entries: ReadonlyMap<string, RouteEntry>
  readonly params: Readonly<Record<string, string>>
}

interface PathNode {
  readonly literals: Map<string, PathNode>
  parameter: { readonly name: string; readonly node: PathNode } | null
  entries: Map<string, RouteEntry> | null
}

export interface Matcher {
  /** Finds the route of a path. Returns null if there is none; undefined if a segment is not valid percent-encoding. */
  find(path: string): Match | null | undefined
  readonly entries: readonly RouteEntry[]
}

/**
 * Compiles routes into a tree of path segments, with one step per segment and literals before parameters. Throws if two
 * routes share method and path, or if a segment has parameters with two names.
 */
export function createMatcher(areas: readonly Area[]): Matcher {
  const root: PathNode = { literals: new Map(), parameter: null, entries: null }
  const all: RouteEntry[] = []
  for (const area of areas) {
    for (const route of area.routes) {
      const pattern = `${area.prefix}${route.path}` || '/'
      const entry = { area, route, pattern, scopes: listAdmittingScopes(area, route) }
      all.push(entry)
      insertEntry(root, entry)
    }
  }
  return {
    entries: all,
    find: (path) => {
      const segments = path.split('/')
      const params: Record<string, string> = {}
      let node: PathNode | undefined = root
      for (let i = 1; i < segments.length && node !== undefined; i++) {
        const segment: string = segments[i]!
        const literal: PathNode | undefined = node.literals.get(segment)
        if (literal !== undefined) {
          node = literal
          continue
        }
        if (node.parameter === null || segment === '') return null
        const value = decodeSegment(segment)
        if (value === undefined) return undefined
        params[node.parameter.name] = value
        node = node.parameter.node
      }
      return node?.entries ? { entries: node.entries, params } : null
    },
  }
}

function insertEntry(root: PathNode, entry: RouteEntry): void {
  let node = root
  for (const segment of entry.pattern.split('/').slice(1)) {
    const created: PathNode = { literals: new Map(), parameter: null, entries: null }
    if (segment.startsWith(':')) {
      node.parameter ??= { name: segment.slice(1), node: created }
      if (node.parameter.name !== segment.slice(1))
        throw new Error(`Two parameter names for one path segment: ${entry.pattern}`)
      node = node.parameter.node
    } else {
      const known = node.literals.get(segment)
      node.literals.set(segment, known ?? created)
      node = known ?? created
    }
  }
  node.entries ??= new Map()
  const method = entry.route.method.toUpperCase()
  if (node.entries.has(method)) throw new Error(`Two routes for ${method} ${entry.pattern}`)
  node.entries.set(method, entry)
}

function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
