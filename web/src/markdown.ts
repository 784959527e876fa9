// Markdown of a model to HTML that may be shown. Three nets: raw HTML in the text is text
// (markdown-it, html: false), what comes out is cleaned (DOMPurify), and the page's policy allows
// neither scripts nor styles from it. LaTeX becomes MathML, which needs no fonts and no styles.
import DOMPurify from 'dompurify'
import katex from 'katex'
import MarkdownIt from 'markdown-it'

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false })

// $…$, $$…$$, \(…\) and \[…\]. A single $ counts only when it looks like mathematics: no blank
// inside the marks, and no digit behind the closing one, as in prices.
interface Mark {
  open: string
  close: string
  display: boolean
}
const marks: Mark[] = [
  { open: '$$', close: '$$', display: true },
  { open: '\\[', close: '\\]', display: true },
  { open: '\\(', close: '\\)', display: false },
  { open: '$', close: '$', display: false },
]

export function findMath(text: string, start: number): { mark: Mark; end: number } | null {
  for (const mark of marks) {
    if (!text.startsWith(mark.open, start)) continue
    const from = start + mark.open.length
    const end = text.indexOf(mark.close, from)
    if (end <= from) continue
    if (mark.open === '$') {
      const body = text.slice(from, end)
      if (/^\s|\s$|\n\s*\n/.test(body) || /\d/.test(text[end + 1] ?? '')) continue
    }
    return { mark, end }
  }
  return null
}

function renderMath(tex: string, display: boolean): string {
  return katex.renderToString(tex, {
    displayMode: display,
    output: 'mathml',
    throwOnError: false,
    trust: false,
    maxExpand: 200,
    maxSize: 20,
  })
}

markdown.inline.ruler.before('escape', 'math', (state, silent) => {
  const found = findMath(state.src, state.pos)
  if (!found) return false
  if (!silent) {
    const token = state.push(found.mark.display ? 'math_block' : 'math_inline', 'math', 0)
    token.content = state.src.slice(state.pos + found.mark.open.length, found.end)
  }
  state.pos = found.end + found.mark.close.length
  return true
})

// A formula on lines of its own: so that its blank lines and underscores are not Markdown.
markdown.block.ruler.before('fence', 'math_block', (state, startLine, endLine, silent) => {
  const begin = state.bMarks[startLine] + state.tShift[startLine]
  const found = findMath(state.src, begin)
  if (!found?.mark.display) return false
  const after = found.end + found.mark.close.length
  let line = startLine
  while (line < endLine && state.eMarks[line] < after) line++
  if (line >= endLine || state.src.slice(after, state.eMarks[line]).trim()) return false
  if (silent) return true
  const token = state.push('math_block', 'math', 0)
  token.block = true
  token.content = state.src.slice(begin + found.mark.open.length, found.end)
  state.line = line + 1
  return true
})
markdown.renderer.rules.math_inline = (tokens, i) => renderMath(tokens[i].content, false)
markdown.renderer.rules.math_block = (tokens, i) => renderMath(tokens[i].content, true)

// Code gets a bar with its language and a button; the button works through the page's listener.
markdown.renderer.rules.fence = (tokens, i) => codeBlock(tokens[i].content, tokens[i].info.trim().split(/\s+/)[0])
markdown.renderer.rules.code_block = (tokens, i) => codeBlock(tokens[i].content, '')

function codeBlock(code: string, language: string): string {
  const escape = markdown.utils.escapeHtml
  return (
    `<div class="code"><div class="code-bar"><span>${escape(language)}</span>` +
    `<button type="button" class="copy">Copy</button></div><pre><code>${escape(code)}</code></pre></div>`
  )
}

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName === 'A') {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
})

export function renderMarkdown(text: string): string {
  return DOMPurify.sanitize(markdown.render(text), {
    USE_PROFILES: { html: true, mathMl: true },
    ADD_TAGS: ['semantics', 'annotation'],
    // No picture is fetched from anywhere: a model could send the conversation away in its address.
    FORBID_TAGS: ['style', 'form', 'input', 'img', 'picture', 'video', 'audio', 'source', 'svg', 'iframe'],
    FORBID_ATTR: ['style', 'srcset', 'background'],
  })
}
