# hadal_embed(TARGET FOLDER): writes a source that holds the files below FOLDER, found by their paths, as WebFiles() of
# server/web/web_files.h. The assembler takes the bytes in, so large files cost the compiler nothing.
function(hadal_embed target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*)
  list(SORT files)
  set(assembly "")
  set(declarations "")
  set(entries "")
  set(index 0)
  foreach(file ${files})
    set(symbol "hadal_web_file_${index}")
    string(APPEND assembly "asm(\".section .rodata\\n${symbol}_begin:\\n.incbin \\\"${folder}/${file}\\\"\\n\"\n"
      "    \"${symbol}_end:\\n.byte 0\\n.global ${symbol}_begin\\n.global ${symbol}_end\\n.previous\\n\");\n")
    string(APPEND declarations "extern const char ${symbol}_begin[], ${symbol}_end[];\n")
    string(APPEND entries "    {\"/${file}\", {${symbol}_begin, static_cast<size_t>(${symbol}_end - ${symbol}_begin)}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/web_files_data.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"server/web/web_files.h\"\n\n@assembly@\nextern \"C\" {\n@declarations@}\n\n\
namespace hadal {\n\nstd::span<const WebFile> WebFiles() {\n  static const WebFile kFiles[] = {\n@entries@  };\n  return kFiles;\n}\n\n\
}  // namespace hadal\n" @ONLY)
  list(TRANSFORM files PREPEND ${folder}/)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
  target_sources(${target} PRIVATE ${source})
endfunction()
