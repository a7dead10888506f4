// Completion of command lines for bash, zsh and fish, made from the table of commands.mjs.
//
// C1. A completion never fails and prints nothing: without a server, or with one that does not answer in time, there are no names.

import { PROGRAMS } from "../lib/programs.mjs";
import { completions, KINDS, NAMES_LIMIT_S } from "./commands.mjs";

const NAMES = `case $1 in
${Object.entries(KINDS)
  .map(([kind, command]) => `    ${kind}) ${limited(command)} ;;`)
  .join("\n")}
  esac 2>/dev/null </dev/null`;
const HEAD = (shell) => `# Completion of the commands of Partita in ${shell}. Made by scripts/completion from the table of commands.\n`;

/** Files by path below dist/completion, and the names under which shells look for them. */
export function completionFiles() {
  return new Map([
    ["partita.bash", bash()],
    ["_partita", zsh()],
    ["partita.fish", fish()],
  ]);
}

/** Names of the commands that have a completion. */
export const completedCommands = () => [...new Set(completions().map(({ name }) => name.split(" ")[0]))].sort();

/** timeout(1) belongs to the first program of a pipe: the others end when it ends. */
function limited(command) {
  return `timeout ${NAMES_LIMIT_S} ${command}`;
}

/** The table as lines of a case: for the words before the cursor, what can stand there. */
function cases() {
  return completions().map(({ name, options, values, first, operands }) => {
    const told = Object.entries(values).map(([option, kinds]) => `${option}) _pbs_kinds='${kinds}' ;;`);
    return `    '${name}') _pbs_options='${options.join(" ")}' _pbs_first='${first}' _pbs_operands='${operands}'
      ${told.length === 0 ? ":" : `case $2 in ${told.join(" ")} *) _pbs_has_value= ;; esac`} ;;`;
  });
}

/** Calls of partita that have calls of their own. */
const withVerbs = () => [...new Set(completions().flatMap(({ name }) => (name.split(" ").length === 3 ? [name.split(" ")[1]] : [])))];

/** The part that bash and zsh share: what is wanted, from the words of the line. */
const TABLE = () => `# $1: the command, with the call of partita; $2: the word before the cursor. Sets what can follow.
_pbs_table() {
  _pbs_kinds= _pbs_options= _pbs_first= _pbs_operands= _pbs_has_value=yes
  case $1 in
${cases().join("\n")}
    *) _pbs_has_value= ;;
  esac
  case $2 in -*) ;; *) _pbs_has_value= ;; esac
}
# The names of one kind of object, one in a line. They come from the server.
_pbs_names() {
  ${NAMES}
}
# $1: the word before the cursor; the others: the words before the cursor, the command first. Sets the table for the place.
_pbs_place() {
  local before=$1 name=\${2##*/} word expects= last= count=0
  shift 2
  if [ "$name" = partita ]; then
    for word; do
      case $expects$word in --home) expects=value: ;; value:*) expects= ;; -*) ;; *) name="$name $word"; last=$word; break ;; esac
    done
    case $last in ${withVerbs().join(" | ")})
      count=0
      for word; do
        case $word in -*) ;; *) count=$((count + 1)); [ $count -eq 2 ] && name="$name $word" && break ;; esac
      done ;;
    esac
  fi
  _pbs_table "$name" "$before"
  _pbs_nth=0 expects=
  for word; do
    if [ -n "$expects" ]; then expects=; continue; fi
    case $word in
      -?*) (_pbs_table "$name" "$word"; [ -n "$_pbs_has_value" ]) && expects=yes ;;
      *) _pbs_nth=$((_pbs_nth + 1)) ;;
    esac
  done
  case $name in 'partita '*' '*) _pbs_nth=$((_pbs_nth - 2)) ;; 'partita '*) _pbs_nth=$((_pbs_nth - 1)) ;; esac
  if [ -z "$_pbs_has_value" ]; then
    if [ "$_pbs_nth" -le 0 ] && [ -n "$_pbs_first" ]; then _pbs_kinds=$_pbs_first; else _pbs_kinds=$_pbs_operands; fi
  fi
}
`;

function bash() {
  return `${HEAD("bash")}
${TABLE()}
_pbs_complete() {
  local cur=$2 line=\${COMP_LINE:0:COMP_POINT} kind word words plain=
  local _pbs_kinds _pbs_options _pbs_first _pbs_operands _pbs_has_value _pbs_nth
  # Words of the line are separated by blanks: bash would also split an id at its colons and an option at its equals sign.
  read -r -a words <<<"$line"
  case $line in *[[:blank:]]) ;; *) unset "words[\${#words[@]}-1]" ;; esac
  [ \${#words[@]} -gt 0 ] || words=("$1")
  cur=\${line##*[[:blank:]]}
  _pbs_place "\${words[\${#words[@]}-1]}" "\${words[@]}"
  COMPREPLY=()
  case $cur in
    -*) [ -n "$_pbs_has_value" ] || _pbs_kinds=$_pbs_options ;;
  esac
  for kind in $_pbs_kinds; do
    case $kind in
      @file) compopt -o filenames 2>/dev/null; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur") ;;
      @directory) compopt -o filenames 2>/dev/null; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$cur") ;;
      @user) COMPREPLY+=($(compgen -u -- "$cur")) ;;
      @host) COMPREPLY+=($(compgen -A hostname -- "$cur")) ;;
      @command) COMPREPLY+=($(compgen -c -- "$cur")) ;;
      ${Object.keys(KINDS)
        .map((kind) => `@${kind}`)
        .join(" | ")})
        # An id of an array has brackets: names are compared as texts and not as patterns.
        while IFS= read -r word; do
          [ "\${word:0:\${#cur}}" = "$cur" ] && COMPREPLY+=("$word")
        done < <(_pbs_names "\${kind#@}") ;;
      *=) [ "\${kind:0:\${#cur}}" = "$cur" ] && { COMPREPLY+=("$kind"); compopt -o nospace 2>/dev/null; } ;;
      *) [ "\${kind:0:\${#cur}}" = "$cur" ] && COMPREPLY+=("$kind") ;;
    esac
  done
  # What bash itself takes for the word begins behind its last colon or equals sign.
  plain=\${cur%"$2"}
  if [ -n "$plain" ] && [ "$plain" != "$cur" ]; then COMPREPLY=("\${COMPREPLY[@]#"$plain"}"); fi
  return 0
}
complete -F _pbs_complete ${completedCommands().join(" ")}
`;
}

function zsh() {
  return `#compdef ${completedCommands().join(" ")}
${HEAD("zsh")}
${TABLE()}
_partita() {
  emulate -L zsh -o sh_word_split
  local _pbs_kinds _pbs_options _pbs_first _pbs_operands _pbs_has_value _pbs_nth kind
  local -a names
  _pbs_place "\${words[CURRENT-1]}" "\${(@)words[1,CURRENT-1]}"
  case \${words[CURRENT]} in
    -*) [ -n "$_pbs_has_value" ] || _pbs_kinds=$_pbs_options ;;
  esac
  for kind in $_pbs_kinds; do
    case $kind in
      @file) _files ;;
      @directory) _files -/ ;;
      @user) _users ;;
      @host) _hosts ;;
      @command) _command_names -e ;;
      ${Object.keys(KINDS)
        .map((kind) => `@${kind}`)
        .join(" | ")})
        names=("\${(@f)$(_pbs_names \${kind#@})}")
        names=(\${names:#})
        (( \${#names} )) && compadd -- "\${(@)names}" ;;
      *=) compadd -S '' -- "$kind" ;;
      *) compadd -- "$kind" ;;
    esac
  done
  return 0
}
# The file is a function that zsh loads by its name, or is sourced.
if [ "\${funcstack[1]-}" = _partita ]; then _partita "$@"; else compdef _partita ${completedCommands().join(" ")}; fi
`;
}

/** fish completes from descriptions of each option and place. */
function fish() {
  const lines = [
    HEAD("fish"),
    "function __pbs_names",
    "  switch $argv[1]",
    ...Object.entries(KINDS).map(([kind, command]) => `    case ${kind}\n      begin; ${limited(command)}; end 2>/dev/null </dev/null`),
    "  end",
    "  return 0",
    "end",
    "# The words that are not options, without the command and the word at the cursor.",
    "function __pbs_operands",
    "  set -l words (commandline -opc)",
    "  string match -v -- '-*' $words[2..-1]",
    "  return 0",
    "end",
    "# Whether the operands begin with the words after the first: first: there are no others; later: there are others.",
    "function __pbs_at",
    "  set -l when $argv[1]",
    "  set -e argv[1]",
    "  set -l found (__pbs_operands)",
    "  set -l wanted (count $argv)",
    "  set -l has (count $found)",
    "  test $has -ge $wanted; or return 1",
    "  for at in (seq $wanted)",
    '    test "$found[$at]" = "$argv[$at]"; or return 1',
    "  end",
    "  switch $when",
    "    case first; test $has -eq $wanted",
    "    case later; test $has -gt $wanted",
    "    case any; test $has -ge $wanted",
    "  end",
    "end",
  ];
  for (const { name, options, values, first, operands } of completions()) {
    const [command, ...call] = name.split(" ");
    const at = (when) => `-n '__pbs_at ${[when, ...call].join(" ")}'`;
    const start = `complete -c ${command}`;
    if (call.length === 0) lines.push(`${start} -f`);
    for (const option of options) {
      const given = option.startsWith("--") ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`;
      lines.push(
        `${start} ${call.length === 0 ? "" : `${at("any")} `}${given}${option in values ? ` ${words(values[option], true)}` : ""}`,
      );
    }
    if (first !== "") lines.push(`${start} ${at("first")} ${words(first)}`);
    if (operands !== "") lines.push(`${start} ${at(first === "" ? "any" : "later")} ${words(operands)}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The arguments of complete(1) of fish for the words of a place. isValue: an option takes them. */
function words(kinds, isValue = false) {
  const all = kinds.split(" ").filter((kind) => kind !== "");
  const given = all
    .map((kind) => FISH[kind] ?? (kind.slice(1) in KINDS ? `(__pbs_names ${kind.slice(1)})` : kind))
    .filter((text) => text !== "");
  const needs = isValue ? (all.includes("@file") ? "-r -F" : "-x") : all.includes("@file") || all.includes("@directory") ? "-F" : "";
  return [needs, ...(given.length === 0 ? [] : [`-a '${given.join(" ")}'`])].filter((text) => text !== "").join(" ");
}
const FISH = {
  "@file": "",
  "@directory": "(__fish_complete_directories)",
  "@user": "(__fish_complete_users)",
  "@host": "(__fish_print_hostnames)",
  "@command": "(__fish_complete_command)",
};

/** Commands of users and administrators that have no completion; a test finds a command that is missing in the table. */
export const withoutCompletion = () => {
  const has = new Set(completedCommands());
  return PROGRAMS.filter(({ kind, name }) => (kind === "command" || kind === "admin") && !has.has(name)).map(({ name }) => name);
};
