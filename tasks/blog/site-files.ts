/** Tells the posts in a site's folder from files that its generator does not build as posts. */

const MARKDOWN = /\.(md|markdown|mdx)$/i
// Folders of packages, tools and templates, wherever they are.
const TOOL_FOLDER =
  /^(?:__macosx|node_modules|bower_components|archetypes|scaffolds|_includes|_layouts|_site|_data|_sass|_templates|_partials|_components|_theme)$/i
// Folders of a site's root, which may be in a folder of its own.
const ROOT_FOLDER =
  /^(?:(?!(?:content|contents|_?posts|blog|src|source|docs|pages|articles)\/)[^/]+\/)?(?:themes|layouts|static|public|vendor|dist|build|templates|partials|includes)\//i
const REPOSITORY_FILE =
  /^(?:readme|licen[cs]e|changelog|contributing|code[-_]of[-_]conduct|copying|(?:pull_request|issue)_template|404)$/i
const UPPERCASE_REPOSITORY_FILE =
  /^(?:SECURITY|SUPPORT|GOVERNANCE|MAINTAINERS|AUTHORS|CONTRIBUTORS|NOTICE|TODOS?|SUMMARY|ROADMAP|HISTORY|UPGRADING|INSTALL|CODEOWNERS|AGENTS|CLAUDE|GEMINI)$/

/** Returns the reason why a file in an archive is no post; null for posts. */
export function explainNoPost(path: string): string | null {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const name = parts.pop() ?? ''
  if (parts.some((part) => part.startsWith('.')) || name.startsWith('.')) return 'Not a post: it is hidden'
  if (parts.some((part) => TOOL_FOLDER.test(part)) || ROOT_FOLDER.test(path))
    return 'Not a post: its folder belongs to a tool, a theme or a package'
  if (!MARKDOWN.test(name)) return 'Not a post: only .md, .markdown and .mdx files are read'
  return name.startsWith('_') ? 'Not a post: its name begins with an underscore' : null
}

/** True for a file that describes a repository. A blog's export may have a file of that name, too. */
export function isRepositoryFile(path: string): boolean {
  const stem = (path.split('/').at(-1) ?? '')
    .replace(MARKDOWN, '')
    .replace(/\.[a-z]{2}(?:[-_][a-z]{2,4})?$/i, '')
  return REPOSITORY_FILE.test(stem) || UPPERCASE_REPOSITORY_FILE.test(stem)
}

export const REPOSITORY_FILE_REASON = 'Not a post: it describes a repository'
export const NO_POSTS_REASON = 'No post was found in the archive'
export const PAGE_REASON = 'Not a post: it is a page or an attachment'
